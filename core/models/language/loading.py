"""Loads the language model that the settings name, or else the bundled one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import CheckpointError, InputError
from core.models.language.prompts import prompt_folder
from core.models.language.roles import SCRIPTED, LanguageModel
from core.models.loading.finding import BUNDLED, LANGUAGE, read_config
from core.models.loading.packaged import PREPARED
from core.models.loading.pretrained import TRANSFORMERS
from core.settings import Settings

if TYPE_CHECKING:
    from core.models.language.endpoint import EndpointModel
    from core.models.language.prompted import PromptedGenerator


class NoLanguageModelError(InputError):
    """A system needs a language model, none is configured and the bundled one is missing: set AMBISCOPE_LM_URL or AMBISCOPE_LM_LOCAL."""


def language_model_needed(settings: Settings) -> str:
    """Empty if the settings name a language model, else which setting to set.  Covers systems that do nothing without one."""
    if settings.lm_url or settings.lm_local:
        return ""
    return (
        "no language model is configured: set AMBISCOPE_LM_URL to an OpenAI-compatible endpoint (http://127.0.0.1:8123/v1), "
        "or AMBISCOPE_LM_LOCAL to a transformers model (folder or hub name)"
    )


def adapter_folder(settings: Settings) -> Path | None:
    """The folder of low-rank updates that AMBISCOPE_LM_LOCAL names, or the bundled one if the settings name no language model;
    None for another model.  Loads nothing.  Raises CheckpointError if the folder or its decoder is missing or damaged."""
    if settings.lm_url:
        return None
    places = [BUNDLED / (settings.lm_local or LANGUAGE), *([Path(settings.lm_local).expanduser()] if settings.lm_local else [])]
    folder = next((place for place in places if (place / "config.json").is_file()), None)
    if folder is None:
        if settings.lm_local:
            return None
        raise CheckpointError(f"checkpoints/{LANGUAGE} is missing; train it with `python -m core train language`")
    stored = read_config(folder)
    if stored.get("kind") != LANGUAGE:
        return None
    if (base := stored.get("config", {}).get("base")) in PREPARED:
        PREPARED[base].check()
    return folder


def require_language_model(settings: Settings) -> None:
    """Raises NoLanguageModelError if there is none, and InputError for an invalid or unsafe address or an invalid prompt.
    Contacts nothing."""
    if missing := language_model_needed(settings):
        try:
            adapter_folder(settings)
        except CheckpointError as error:
            raise NoLanguageModelError(f"{missing}; the bundled one cannot be used: {error}") from None
    prompt_folder(settings.lm_prompts)
    if settings.lm_url and settings.lm_url != SCRIPTED:
        from core.models.language.address import check_url

        check_url(settings.lm_url, settings.lm_key)


def load_language_generator(settings: Settings) -> PromptedGenerator:
    """The generator over the language model of the settings; one model for all callers with the same settings.

    Raises NoLanguageModelError, InputError for a wrong address or prompt, FormatError as `load_prompt`, LanguageModelError if the endpoint must list
    its models and does not answer, CheckpointError.
    """
    require_language_model(settings)
    from core.models.language.prompted import PromptedGenerator

    prompts = prompt_folder(settings.lm_prompts)
    if (folder := adapter_folder(settings)) is None:
        return PromptedGenerator(_model(settings), settings.lm_max_tokens, prompts)
    with TRANSFORMERS:
        from core.models.language.bundled import PROMPTS, load_bundled

        model = load_bundled(folder, settings.device, settings.lm_concurrency)
    return PromptedGenerator(model, settings.lm_max_tokens, prompts or PROMPTS)


def _model(settings: Settings) -> LanguageModel:
    if settings.lm_url == SCRIPTED:
        from core.models.language.scripted import ScriptedLanguageModel

        return ScriptedLanguageModel()
    if settings.lm_url:
        if _endpoint(settings).is_gone:
            _endpoint.cache_clear()
        return _endpoint(settings)
    with TRANSFORMERS:
        from core.models.language.local import load_local

        return load_local(settings.lm_local, settings.device, settings.lm_concurrency)


@lru_cache(maxsize=4)
def _endpoint(settings: Settings) -> EndpointModel:
    from core.models.language.endpoint import EndpointModel

    model = EndpointModel(settings)
    model.connect()
    return model
