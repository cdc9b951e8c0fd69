//! What the simulated load leaves behind: ordered events. The plan judges nothing; rules do.

/// Where in the load something happens, in vLLM's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// `EngineArgs.create_engine_config`: config parsing, architecture, quantization method.
    Config,
    /// Construction of the model's modules.
    Init,
    /// Streaming the tensors.
    Load,
    /// `track_weights_loading`.
    Track,
    /// `process_weights_after_loading`.
    Post,
}

/// What an event means for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// vLLM raises here.
    Refuses,
    /// vLLM goes on, and something holds what its author did not store.
    Damages,
    /// A fact worth knowing; the verdict is untouched.
    Keeps,
}

macro_rules! kinds {
    ($($(#[$m:meta])* $name:ident),* $(,)?) => {
        /// Kinds of events. Each belongs to exactly one rule (a house test checks it).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$m])* $name),* }
        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$name),*];
        }
    };
}

kinds! {
    // --- files, index, header
    /// No file that vLLM's load format would read.
    NoWeights,
    /// The index names a file that is not there (`file`).
    ShardMissing,
    /// The index cannot be used (not JSON, no `weight_map`, empty).
    IndexBroken,
    /// The index names a path outside the folder (`file`).
    IndexEscapes,
    /// The index names a tensor that no shard holds (`tensor`).
    IndexGhost,
    /// A shard holds a tensor that the index does not name, or places elsewhere (`tensor`).
    IndexStale,
    /// A top-level safetensors file that the index does not name, so vLLM drops it (`file`).
    ShardUnlisted,
    /// The same tensor in two shards; the last one wins (`tensor`, `file`).
    DuplicateTensor,
    /// A shard whose header or length is defective (`file`, `detail`).
    HeaderBroken,
    /// A shard that is a Git LFS pointer while others are not (`file`).
    PointerAmongShards,
    /// `consolidated*.safetensors` that makes vLLM change the load format (`file`).
    Consolidated,
    // --- config
    /// `config.json` is missing.
    ConfigMissing,
    /// `config.json` is not readable as a JSON object.
    ConfigBroken,
    /// `model_type` is missing or unknown.
    ModelTypeUnknown,
    /// A field of the wrong type or a failed validator (`pointer`).
    ConfigField,
    /// No architecture named and none derivable.
    NoArchitecture,
    /// No architecture is named, and the base class stands in: pooling, no text (`detail` = class, `module` = the one that generates).
    BaseClass,
    /// vLLM does not know the architecture.
    ArchitectureUnknown,
    /// vLLM dropped the architecture in an earlier version.
    ArchitectureRemoved,
    /// A draft model, which cannot be served on its own.
    DraftModel,
    /// The config class is remote code, and the run does not trust it (`pointer`).
    RemoteCode,
    /// The config class is remote code, and its file is not there (`detail` = file).
    RemoteCodeMissing,
    /// A `load_format`, `quantization` or other argument that vLLM refuses.
    ArgumentRefused,
    // --- quantization config
    /// The method is not one of vLLM's.
    QuantMethodUnknown,
    /// A quantization dict without `quant_method`: vLLM treats the model as unquantized (`pointer`).
    QuantMethodMissing,
    /// A key or value of the quantization config that vLLM rejects (`pointer`).
    QuantConfigRejected,
    /// No scheme for this combination (`module`).
    SchemeUnsupported,
    /// A scheme that vLLM has on one kind of GPU alone (`module`).
    DeviceOnly,
    /// A layer whose sizes do not fit the scheme, e.g. group size (`module`).
    SchemeShape,
    /// The shards of a fused layer disagree about being ignored (`module`).
    FusedMixture,
    /// An embedding or head for which a scheme was chosen that it cannot take (`module`).
    EmbeddingScheme,
    /// An ignore entry that matches nothing (`pointer`, `detail` = entry).
    IgnoreDead,
    /// A target that matches nothing (`pointer`, `detail` = target).
    TargetDead,
    /// A pattern that Python's `re` would not compile (`pointer`).
    PatternBroken,
    /// A module built quantized whose stored weight is plain (`tensor`, `module`).
    UnlistedLinear,
    /// A module built plain because an entry ignores it, whose stored tensors are quantized (`tensor`, `module`).
    IgnoredButPacked,
    /// Quantized tensors while vLLM sees no quantization for the module (no config, no target) (`tensor`, `module`).
    PackedUnexpected,
    /// A tensor of a quantized module that its scheme has no parameter for, e.g. zero point (`tensor`, `module`).
    SchemeSurplus,
    /// A quantized module whose tensors do not fit in shape: group size, width, scales (`tensor`, `module`).
    SchemeMisfit,
    // --- tie
    /// Tied by config and shipped with a head of its own (`tensor`, `bytes`).
    TiedWithHead,
    /// Tied to an embedding that has no plain weight (packed).
    TiedToPacked,
    /// The flag differs between top level and text config (`pointer`).
    TieFlagConflict,
    /// A name that ends in `lm_head.weight`, is not the head, and unties it (`tensor`).
    StrayHeadUnties,
    /// The head is not tied and nothing writes it.
    HeadMissing,
    /// The embedding is not written (tied or not).
    EmbeddingMissing,
    /// A head in the files and no head module in the class.
    HeadWithoutModule,
    // --- tower
    /// Tensors of a tower that the class or config does not have; vLLM drops them (`tensor`, `bytes`).
    TowerLeftover,
    /// Tensors of a tower that vLLM refuses (`tensor`).
    TowerUnexpected,
    /// A tower in the config with no tensor at all (`module` = tower).
    TowerMissing,
    /// A multimodal class whose tower config is null (`pointer`).
    TowerConfigMissing,
    /// The config of another class under a multimodal architecture (`detail`, `module` = the class that would fit).
    ForeignConfig,
    // --- load
    /// A tensor without a home, where no other kind says more (`tensor`).
    NoHome,
    /// A tensor below a layer index that the config does not have (`tensor`).
    ExtraLayer,
    /// A tensor of the wrong shape (`tensor`, `module`).
    ShapeMismatch,
    /// A tensor of which vLLM silently takes only a part (`tensor`, `module`).
    Cut,
    /// A parameter that nothing writes (`module` = full parameter name).
    Unwritten,
    /// A fused or expert parameter of which parts stay unwritten (`module` = full parameter name, `detail` = which).
    HalfWritten,
    /// Every parameter of a layer index is unwritten (`module` = layer).
    LayerMissing,
    /// A tracked parameter that is missing: vLLM refuses (`module` = full parameter name).
    NotInitialized,
    /// A persistent buffer that keeps its default (`module` = full buffer name).
    BufferDefault,
    /// A stored dtype that loses its meaning in the parameter's dtype (`tensor`, `module`).
    Cast,
    /// A tensor that vLLM drops without a word (`tensor`, `bytes`).
    Dropped,
    /// Names carry a wrapper prefix (`detail` = prefix).
    WrapperPrefix,
    // --- what could not be looked at
    /// We lack the facts (`detail` = reason).
    Unknown,
    /// The weights are not here; only names were checked.
    WeightsAbsent,
}

/// An exception of vLLM's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// Python type, e.g. `ValueError`.
    pub error_type: String,
    /// Root-cause text: sets sorted, the checkpoint's folder written as `<dir>`.
    pub text: String,
}

impl Raised {
    /// An exception of this type with this text.
    pub fn new(error_type: &str, text: impl Into<String>) -> Raised {
        Raised { error_type: error_type.to_owned(), text: text.into() }
    }
}

/// One event of the load.
#[derive(Debug, Clone)]
pub struct Event {
    /// When.
    pub stage: Stage,
    /// What it means.
    pub effect: Effect,
    /// What it is.
    pub kind: Kind,
    /// File of the checkpoint it concerns.
    pub file: Option<String>,
    /// Stored tensor name.
    pub tensor: Option<String>,
    /// vLLM module or parameter name.
    pub module: Option<String>,
    /// JSON pointer into `file` (into `config.json` when `file` is none).
    pub pointer: Option<String>,
    /// More, by kind; lower case words or a bare value.
    pub detail: String,
    /// Bytes concerned.
    pub bytes: u64,
    /// What vLLM raises, when it refuses.
    pub error: Option<Raised>,
    /// The tensor that vLLM had in hand when it raised, where that is not `tensor`: loaders that put some aside blame the last one.
    pub in_hand: Option<String>,
}

impl Event {
    /// An event with everything optional left empty.
    pub fn new(stage: Stage, effect: Effect, kind: Kind) -> Self {
        Event {
            stage,
            effect,
            kind,
            file: None,
            tensor: None,
            module: None,
            pointer: None,
            detail: String::new(),
            bytes: 0,
            error: None,
            in_hand: None,
        }
    }
}

/// What would happen, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// vLLM raises nothing, and everything holds what its author stored.
    Loads,
    /// vLLM raises.
    Refuses,
    /// vLLM raises nothing, and something holds garbage.
    Damages,
    /// We lack the facts.
    Unknown,
}

/// The ordered events of one simulated load.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// In vLLM's order.
    pub events: Vec<Event>,
}

impl Trace {
    /// The first event that makes vLLM raise.
    pub fn first_refusal(&self) -> Option<&Event> {
        self.events.iter().filter(|e| e.effect == Effect::Refuses).min_by_key(|e| e.stage)
    }

    /// The verdict: first refusing event, else damaging events, else unknown if facts were missing, else loads.
    pub fn class(&self) -> Class {
        if self.first_refusal().is_some() {
            Class::Refuses
        } else if self.events.iter().any(|e| matches!(e.kind, Kind::Unknown | Kind::DraftModel)) {
            Class::Unknown
        } else if self.events.iter().any(|e| e.effect == Effect::Damages) {
            Class::Damages
        } else {
            Class::Loads
        }
    }

    /// Events of one kind, in order.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |e| e.kind == kind)
    }
}
