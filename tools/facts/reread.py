"""Loaders of class files anew, after hand.py has learnt another loop: what was `a way of its own` and is read now.

    python tools/facts/reread.py ARCH...

A few builds of each class, with the loaders' mappers measured; everything else in the files stays.
"""
import random
import sys

import real


def main():
    real.start()
    import extract
    import where
    from configs import remote
    from plan import load
    for arch in sys.argv[1:]:
        cls, t = extract.file_of(arch), extract.type_of(arch)
        f = load("classes", cls)
        remote(t)
        extract.entry(arch).load_model_cls()
        rng, wrapper = random.Random(3), extract.arch_is_wrapper(arch)
        extra = extract.prepare([(arch, t)], rng, wrapper)
        samples = [extract.draw(arch, t, rng, extra, wrapper)[0] for _ in range(8)]
        extract.mark(samples)
        g = extract.Gen(samples, arch, lambda c: None)

        def walk(node, path):
            loader = node.get("loader")
            if loader and loader["kind"] not in ("auto", "keyed", "routed"):
                found = [(extract.Env(s, {}), s.nodes[path]["loader"]) for s in samples if s.nodes.get(path, {}).get("cls") == node["cls"]]
                if found:
                    node["loader"] = g.loader(found, path)
                print(cls, path, node["loader"]["kind"] if found else "not built")
            for c in node.get("nodes", []):
                if "name" in c:
                    walk(c, f"{path}.{c['name']}" if path else c["name"])
        walk(f["tree"], "")
        if g.unknown:
            print(f"{arch}: left as it was: {g.unknown}")
            continue
        with open(where.folder(f"classes/{cls}.json"), "w") as o:
            o.write(extract.dump(f))


if __name__ == "__main__":
    main()
