# A static binary and nothing else:
#   docker build -t ckpt-lint .
#   docker run --rm --network none -v "$PWD:/w:ro" ckpt-lint examples/unlisted-linear/mended
FROM rust:1-alpine AS build
# Alpine keeps one version of a package only; a pinned one is gone with the next.
# hadolint ignore=DL3018
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY src src
COPY rules rules
COPY benches benches
RUN cargo build --locked --profile dist && cp target/dist/ckpt-lint /ckpt-lint

FROM scratch
COPY --from=build /ckpt-lint /ckpt-lint
WORKDIR /w
USER 65534:65534
ENTRYPOINT ["/ckpt-lint"]
