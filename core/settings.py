"""The only reader of the environment.  Every setting is `AMBISCOPE_<NAME>` with a default that works."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from core.errors import InputError, check_removed

ROOT = Path(__file__).resolve().parent.parent  # the repository
PLUGINS = "AMBISCOPE_PLUGINS"


@dataclass(frozen=True)
class Settings:
    """All settings.  `home` holds all state: database, corpora, indexes, downloaded weights, run folders."""

    home: Path = ROOT / "var"
    database_url: str = ""  # empty: SQLite file ambiscope.db under home
    device: str = "auto"  # auto, cpu, cuda, cuda:1 ...
    threads: int = 0  # CPU threads of torch; 0: as many as this process may use
    encoder: str = "minilm"  # minilm: the packaged all-MiniLM-L6-v2; else a sentence-transformers name or folder
    index_kind: str = "auto"  # flat, ivfpq, hnsw; auto: flat, and ivfpq for a large corpus
    large_corpus: int = 500_000  # passages from which on a corpus is large: vectors in float16
    index_gpus: str = "replicate"  # FAISS with several GPUs: replicate (a copy on each), shard (a part on each), one
    retriever: str = "hybrid"  # dense, bm25, hybrid
    system: str = "ambiscope"
    answerer: str = "default"  # bundled checkpoint name, folder or hub name
    reader: str = "default"  # bundled checkpoint name or folder
    asqa_reader: str = ""  # of Disambig-F1: a SQuAD 2.0 reader by folder or hub name; default: the bundled one; empty: none
    seq2seq: str = "fid"  # of fid and spanseqgen: bundled checkpoint name, folder or hub name of an encoder-decoder
    rewriter: str = "rewriter"  # of disambig-first: the same, of an encoder-decoder that writes disambiguated questions
    writer: str = "writer"  # bundled checkpoint name or folder of the decoder that writes disambiguated questions
    top_k: int = 10
    max_answers: int = 8
    corpus: str = "starter"
    # the optional language model, for verdict, dtv and rac: an OpenAI-compatible endpoint or a transformers model
    lm_url: str = ""  # http://127.0.0.1:8123/v1
    lm_model: str = ""  # name that the endpoint knows; empty: the first one for chats that it lists
    lm_key: str = field(default="", repr=False)  # sent only to the endpoint; never shown, logged or stored
    lm_local: str = ""  # folder or hub name of a transformers model, or folder of `train language`; used when lm_url is empty
    lm_prompts: str = ""  # folder of other prompts, with files named like those in core/models/language/prompts; empty: ours
    lm_timeout: int = 120  # seconds of one call, retries included
    lm_run_timeout: int = 600  # seconds for one whole question; passages not read by then are marked as failed
    lm_concurrency: int = 4  # concurrent calls; for a local model, prompts per batch
    lm_retries: int = 3  # retries of a call after "too many requests", a server error or a broken connection
    lm_max_tokens: int = 256  # of one completion
    lm_max_response_kb: int = 1024
    max_upload_mb: int = 50
    max_upload_lines: int = 500_000
    max_upload_pages: int = 2_000
    max_upload_minutes: int = 30  # to read all files of an upload
    max_line_chars: int = 1_000_000
    max_question_chars: int = 2_000
    annotator: str = "me"  # name of the only user of a local installation
    host: str = ""  # address that `run.py app` listens on; empty: 127.0.0.1, this machine only (.streamlit/config.toml)
    open_to_all: int = 0  # 1: other machines may connect without any accounts, and can do everything
    # `core serve`: the engine as a service over HTTP
    serve_host: str = "127.0.0.1"
    serve_port: int = 8700
    serve_key: str = field(default="", repr=False)  # what callers send as their bearer token; empty: no key, this machine only
    serve_workers: int = 4  # questions that are worked on at the same time
    serve_queue: int = 64  # questions that may wait; further ones are refused
    serve_deadline: int = 120  # seconds for one question, waiting included
    serve_batch: int = 8  # questions that a model reads together at most, if they wait for it at the same moment; 1: none
    serve_grace: int = 20  # seconds that questions get to finish when the service stops
    serve_max_request_kb: int = 1024
    serve_origins: str = ""  # web pages of these origins may call the service (CORS), separated by commas
    # the app and `ask` over such a service instead of models of their own
    engine_url: str = ""  # http://127.0.0.1:8700
    engine_key: str = field(default="", repr=False)  # the service's key
    engine_timeout: int = 30  # seconds without a word from the service
    plugins: str = ""  # Python files with further systems, metrics, readers and exports, separated as in PATH (core.plugins)
    traces: str = ""  # OTLP endpoint for OpenInference spans of each run, http://127.0.0.1:6006/v1/traces; empty: none are sent

    def __post_init__(self) -> None:
        for name, choices in (
            ("index_kind", ("auto", "flat", "ivfpq", "hnsw")),
            ("index_gpus", ("replicate", "shard", "one")),
            ("retriever", ("dense", "bm25", "hybrid")),
        ):
            if getattr(self, name) not in choices:
                raise InputError(f"AMBISCOPE_{name.upper()} is '{getattr(self, name)}'; use one of {', '.join(choices)}")
        for name in (
            "top_k large_corpus max_answers max_upload_mb max_upload_lines max_upload_pages max_upload_minutes max_line_chars max_question_chars "
            "lm_timeout lm_run_timeout lm_concurrency lm_max_tokens lm_max_response_kb engine_timeout "
            "serve_workers serve_queue serve_deadline serve_batch serve_grace serve_max_request_kb"
        ).split():
            if getattr(self, name) < 1:
                raise InputError(f"AMBISCOPE_{name.upper()} is {getattr(self, name)}; it must be at least 1")
        for name, low, high in (("threads", 0, 1024), ("lm_retries", 0, 20), ("serve_port", 1, 65_535)):
            if not low <= getattr(self, name) <= high:
                raise InputError(f"AMBISCOPE_{name.upper()} is {getattr(self, name)}; it must be {low} to {high}")

    @property
    def corpora_dir(self) -> Path:
        return self.home / "corpora"

    @property
    def runs_dir(self) -> Path:
        return self.home / "runs"

    @property
    def starter_dir(self) -> Path:
        return ROOT / "data" / "starter"

    @property
    def url(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'ambiscope.db'}"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Reads `AMBISCOPE_*`.  Raises InputError for an unknown name or a value of the wrong type."""
        env = os.environ if environ is None else environ
        names = {f"AMBISCOPE_{f.name.upper()}": f.name for f in fields(cls)}
        values: dict[str, object] = {}
        for key, raw in env.items():
            if not key.startswith("AMBISCOPE_"):
                continue
            check_removed(key)
            if key not in names:
                raise InputError(f"unknown setting {key}; known: {', '.join(sorted(names))}")
            name, default = names[key], getattr(cls, names[key])
            try:
                values[name] = type(default)(raw) if isinstance(default, int) else raw
            except ValueError:
                raise InputError(f"{key} is '{raw}'; it must be a whole number") from None
            if isinstance(default, Path):
                if not raw.strip():  # would be the current folder
                    raise InputError(f"{key} is empty; name a folder, or leave the setting out")
                values[name] = Path(raw).expanduser().resolve()
        return cls(**values)  # type: ignore[arg-type]

    @classmethod
    def changed(cls, **changes: object) -> Settings:
        """The environment's settings with some changes: `Settings.changed(corpus="mine", top_k=20)`.  Raises InputError as
        `from_env`."""
        return cls.from_env(child_environment(**{name: str(value) for name, value in changes.items()}))


def let_threads_sleep() -> None:
    """Makes waiting OpenMP threads sleep instead of spinning, which would take CPU from the browser and from other threads.
    OMP_WAIT_POLICY overrides it.  Call before torch is imported."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_few_kernels() -> None:
    """Limits oneDNN's kernel cache.  It keeps 1,024 kernels, one per matrix shape, and text lengths rarely repeat, so most are never reused.
    ONEDNN_PRIMITIVE_CACHE_CAPACITY overrides it.  Call before torch is imported."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")


def prepare_ray(starts_cluster: bool = False) -> None:
    """Keeps Ray from reporting its use to its makers, unless RAY_USAGE_STATS_ENABLED is set, and gives a cluster that this
    process starts its own token.  Otherwise Ray would write one to ~/.ray and require it of every later cluster.  Call before
    Ray is imported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if starts_cluster:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def plugin_files() -> tuple[Path, ...]:
    """The files of AMBISCOPE_PLUGINS, with full paths."""
    return tuple(Path(name).expanduser().resolve() for name in os.environ.get(PLUGINS, "").split(os.pathsep) if name.strip())


def child_environment(**changes: str) -> dict[str, str]:
    """The environment of a child process: this one's, with settings changed: `child_environment(answerer="default")`."""
    whole_paths = (
        {PLUGINS: os.pathsep.join(map(str, files))} if (files := plugin_files()) else {}
    )  # it may run in another folder
    return {**os.environ, **whole_paths, **{f"AMBISCOPE_{name.upper()}": value for name, value in changes.items()}}


def quiet_libraries() -> None:
    """Silences the progress bars and load reports of libraries, bounds oneDNN's cache, and keeps JAX off the GPU: bm25s imports it where it is
    installed, and on a GPU it would take three quarters of the memory.  Call before they are imported."""
    keep_few_kernels()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
