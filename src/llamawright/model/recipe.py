"""What to build: the content of ``recipes/<name>.toml`` after validation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from llamawright.model.platform import Backend
from llamawright.model.release import ReleaseRule


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOrigin:
    """A source distribution or wheel from the Python index that pip is configured for."""

    project: str
    version: str
    filename: str
    size: int
    sha256: str
    subdir: str = ""

    @property
    def label(self) -> str:
        return f"index:{self.filename}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOrigin:
    """An archive behind an address.

    Hosting sites recompress source archives, so ``sha256`` may be absent: then ``size``
    is only a cap in bytes and the tree digest is what pins the content.
    """

    url: str
    size: int
    sha256: str | None = None
    subdir: str = ""

    @property
    def label(self) -> str:
        return f"archive:{self.url}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOrigin:
    """A git repository at a full 40-digit commit."""

    url: str
    commit: str
    subdir: str = ""

    @property
    def label(self) -> str:
        return f"git:{self.url}@{self.commit[:9]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOrigin:
    """A folder on this machine, copied and never written to."""

    path: str

    @property
    def label(self) -> str:
        return f"path:{self.path}"


Origin = IndexOrigin | ArchiveOrigin | GitOrigin | PathOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePin:
    """One upstream revision and every place it can come from.

    ``tree`` is the digest over ``include`` (files and folders, relative to the source
    root) that every origin must lead to; ``None`` only for a local path, whose content is
    the user's own and is digested, not pinned. ``timestamp`` is the commit's own date in
    seconds since the epoch, for ``SOURCE_DATE_EPOCH``. A release that is published for less
    than ``min_age_days`` is not taken as a new pin.
    """

    upstream: str
    commit: str
    build_number: int
    version: str
    include: tuple[str, ...]
    tree: str | None
    origins: tuple[Origin, ...]
    timestamp: int = 0
    min_age_days: float = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One CMake cache entry. ``reason`` says why we set it.

    A ``guard`` is a safety net that the project may never read, so CMake's "not used by
    the project" says nothing against it; for every other entry that is a failure.
    """

    name: str
    value: str
    type: str = "BOOL"
    reason: str = ""
    guard: bool = False

    @property
    def argument(self) -> str:
        """Return the entry as one CMake argument."""
        return f"-D{self.name}:{self.type}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Something a shader compiler or toolkit can add to a module.

    ``define`` is the preprocessor name that CMake sets when it is there; ``cost`` tells a
    reader what an artifact without it loses. ``extension`` is the GLSL extension's own
    name, ``feature_test`` upstream's test shader relative to the source root.
    """

    name: str
    define: str
    feature_test: str
    cost: str
    extension: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaRule:
    """What only a CUDA module has.

    ``release`` are the codes of a release build, those of them that the toolkit knows:
    ``61``, ``90-virtual``. ``exact`` are the capabilities that upstream compiles as ``a``
    code whatever is asked for (120 becomes 120a), which no later card runs. ``bundled``:
    CUDA's runtime libraries go into a companion archive; else the system must have them.
    """

    release: tuple[str, ...] = ()
    exact: tuple[int, ...] = ()
    bundled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRule:
    """How one backend's module is built and recognised.

    ``targets`` and ``modules`` may hold ``*``: the CPU variants differ by machine, and
    CMake's own ``GGML_AVAILABLE_BACKENDS`` names them. ``min_headers`` is the least
    ``VK_HEADER_VERSION`` (the patch number, which only ever rises: 204 < 239 < 309) that
    compiles unpatched, ``min_headers_patched`` the least that compiles with our series.
    ``max_mean_kld`` replaces the verification's own where the backend's kernels round more.
    """

    backend: Backend
    options: tuple[Option, ...] = ()
    targets: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    device_prefix: str = ""
    min_headers: int | None = None
    min_headers_patched: int | None = None
    capabilities: tuple[Capability, ...] = ()
    required_capabilities: tuple[str, ...] = ()
    allowed_imports: tuple[str, ...] = ()
    cuda: CudaRule | None = None
    max_mean_kld: Threshold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPin:
    """The verification model: where its bytes come from and what it must answer."""

    name: str
    origin: IndexOrigin
    member: str
    size: int
    sha256: str
    layers: int
    license: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit of the numeric proof, with the reason for its value."""

    value: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A greedy prompt; ``expect`` must be in the answer (empty: only CPU agreement)."""

    text: str
    tokens: int
    expect: str = ""


class TypeSource(StrEnum):
    """What a type is made from: the pinned model, or the tiny one of our own."""

    PINNED = "pinned"
    SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelType:
    """A quantisation that the artifact's own quantiser makes of a model.

    ``name`` as ``llama-quantize`` takes it (``F16``); ``max_mean_kld`` as for the model itself.
    ``importance``: the type cannot be made without an importance matrix (``IQ2_XS``), which
    only the synthetic model has. ``software_batches`` replace the table's where a software
    device compiles this type's kernels for too long. ``backends`` are limits by backend that
    replace ``max_mean_kld`` where its kernels round more.
    """

    name: str
    max_mean_kld: Threshold
    source: TypeSource = TypeSource.PINNED
    importance: bool = False
    software_batches: tuple[int, ...] = ()
    backends: dict[str, Threshold] = field(default_factory=dict)

    def on(self, backend: Backend) -> ModelType:
        """Return the type with the limit of a backend."""
        own = self.backends.get(str(backend))
        return self if own is None else replace(self, max_mean_kld=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeWork:
    """How much of the text is computed with each type, at each batch size."""

    context: int
    chunks: int
    batches: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRules:
    """The work for types of the synthetic model: on a CPU or hardware, and in software."""

    hardware: TypeWork
    software: TypeWork


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSet:
    """Operations of upstream's test-backend-ops that the model's graph is made of.

    ``params`` is a regular expression over a case's parameters, empty for all cases.
    ``software``: quick enough for a software device too. ``seconds`` end it.
    """

    names: tuple[str, ...]
    seconds: float
    params: str = ""
    software: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How much is computed: ``chunks`` of ``context`` tokens of the text at each batch size.

    ``prompts`` has one entry for each of the recipe's prompts that is run, from the first
    one on: how many of its tokens are computed at a time.
    """

    context: int
    chunks: int
    batches: tuple[int, ...]
    prompts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakRules:
    """How long runs over hours may drift, and how much each round generates.

    The slowdowns are shares of the speed at the beginning, ``max_leak`` is in bytes of the
    device's memory and of the program's own. A software device shares its cores with all
    else that runs, so it has a limit and a count of tokens of its own.
    """

    tokens: int
    software_tokens: int
    max_slowdown: Threshold
    max_software_slowdown: Threshold
    max_leak: Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What proves an artifact: model, prompts, text, limits in seconds.

    ``hardware`` is the work for a real device, ``software`` that for one that is a CPU in
    disguise and computes a few tokens a second; without them ``context`` and ``chunks`` are
    computed in one batch. ``types`` are proved beside the model's own type: those of the
    pinned model on hardware and with that model only, an own one may be too large to be made
    anew; those of the ``synthetic`` model everywhere. ``max_repeat`` is how far the same run
    on the same device may differ from itself, in nats for any chunk. ``operations`` are tried
    one by one where the ``-tests`` archive is there. ``baselines`` are the CPU variants that
    a CPU artifact is compared with, the plainest of each machine.
    """

    model: ModelPin
    prompts: tuple[Prompt, ...]
    text: str
    context: int
    chunks: int
    max_mean_kld: Threshold
    min_top1: Threshold
    probe_s: float
    load_s: float
    first_token_s: float
    total_s: float
    output_cap: int
    hardware: Workload | None = None
    software: Workload | None = None
    baselines: tuple[str, ...] = ()
    types: tuple[ModelType, ...] = ()
    soak: SoakRules | None = None
    synthetic: SyntheticRules | None = None
    max_repeat: Threshold | None = None
    operations: tuple[OperationSet, ...] = ()

    def workload(self, *, software: bool) -> Workload:
        """Return how much is computed on a hardware or a software device."""
        chosen = self.software if software else self.hardware
        return chosen or Workload(
            context=self.context,
            chunks=self.chunks,
            batches=(self.context,),
            prompts=(self.context,) * len(self.prompts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A whole recipe. ``digest`` is over its own file's bytes.

    ``test_options`` replace the entries of the same name when the ``-tests`` archive is
    wanted too. ``libraries`` are stems (``ggml-base``); ``allowed_imports`` are file-name
    patterns of what every supported system brings itself.
    """

    name: str
    path: str
    digest: str
    source: SourcePin
    options: tuple[Option, ...]
    programs: tuple[str, ...]
    test_programs: tuple[str, ...]
    libraries: tuple[str, ...]
    licenses: tuple[str, ...]
    allowed_imports: tuple[str, ...]
    backends: tuple[BackendRule, ...]
    verification: Verification
    patches: str
    test_options: tuple[Option, ...] = ()
    release: ReleaseRule | None = None

    def rule(self, backend: Backend) -> BackendRule | None:
        """Return the rule of ``backend``, or ``None`` when the recipe has none."""
        return next((r for r in self.backends if r.backend is backend), None)
