"""The language model of the settings."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from core.errors import InputError
from core.models.encoders.pretrained import TRANSFORMERS
from core.models.language.prompts import prompt_folder
from core.models.language.roles import SCRIPTED, LanguageModel
from core.settings import Settings

if TYPE_CHECKING:
    from core.models.language.address import Address
    from core.models.language.endpoint import EndpointModel
    from core.models.language.prompted import PromptedGenerator


class NoLanguageModelError(InputError):
    """A system needs a language model and none is configured: set AMBISCOPE_LM_URL or AMBISCOPE_LM_LOCAL."""


def language_model_needed(settings: Settings) -> str:
    """Empty if a language model is configured, else what to set."""
    if settings.lm_url or settings.lm_local:
        return ""
    return (
        "no language model is configured: set AMBISCOPE_LM_URL to an OpenAI-compatible endpoint (http://127.0.0.1:8123/v1), "
        "or AMBISCOPE_LM_LOCAL to a transformers model (folder or hub name)"
    )


def require_language_model(settings: Settings) -> None:
    """Raises NoLanguageModelError if none is configured, InputError for an invalid or unsafe address, or a wrong prompt.  Contacts nothing."""
    if missing := language_model_needed(settings):
        raise NoLanguageModelError(missing)
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

    return PromptedGenerator(_model(settings), settings.lm_max_tokens, prompt_folder(settings.lm_prompts))


def _model(settings: Settings) -> LanguageModel:
    if settings.lm_url == SCRIPTED:
        from core.models.language.scripted import ScriptedLanguageModel

        return ScriptedLanguageModel()
    if settings.lm_url:
        from core.models.language.address import Address

        address = Address.from_settings(settings)
        if _endpoint(address).is_gone:
            _endpoint.cache_clear()
        return _endpoint(address)
    with TRANSFORMERS:
        from core.models.language.local import load_local

        return load_local(settings.lm_local, settings.device, settings.lm_concurrency)


@lru_cache(maxsize=4)
def _endpoint(address: Address) -> EndpointModel:
    from core.models.language.endpoint import EndpointModel

    model = EndpointModel(address)
    model.connect()
    return model
