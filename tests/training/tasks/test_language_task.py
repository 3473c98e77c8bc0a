"""The bundled language model: what its training rows ask and reply, and a short training whose result is loaded and asked."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_models import tiny_decoder

from core.cli import main
from core.errors import CheckpointError, InputError
from core.models.language.bundled import PROMPTS, chat_tokenizer, load_bundled
from core.models.language.decoder import IGNORED, DecoderConfig, collate, load_decoder, new_decoder, save_decoder
from core.models.language.loading import NoLanguageModelError, load_language_generator, require_language_model
from core.models.language.local import LocalModel
from core.models.language.prompted import PromptedGenerator
from core.models.language.prompts import load_prompt
from core.models.language.roles import Claim, Run
from core.models.language.scripted import ScriptedLanguageModel
from core.settings import Settings
from core.training.data.examples import MultiExample
from core.training.language import (
    ROLES,
    LanguageTask,
    ambignq_language_examples,
    annotated_language_examples,
    make_call,
    row,
)
from core.types import Passage

BALL = ("North", "The ball of the town is red since Ida Brook painted it.")
BOAT = ("South", "Its boat is blue.")
OTHER = ("East", "A car of Nora Vance stood there.")
ALSO_RED = ("West", "A red door.")  # holds an answer, and nobody says whether it supports it
EXAMPLE = MultiExample(
    "Which colour is it?",
    (BALL, BOAT, OTHER, ALSO_RED),
    (("red",), ("blue", "azure")),
    "made",
    extra={
        "questions": ["Which colour is the ball?|Which colour has the ball?", "Which colour is the boat?"],
        "supporting": ["1", "2"],
        "supporting_of": [["1"], ["2"]],
        "context": ["1", "2", "3", "4"],
    },
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    return tiny_decoder(tmp_path_factory.mktemp("models") / "decoder")


def replies(role: str, tries: int = 60) -> dict[str, Any]:
    """The replies of a role by the last message of their calls, over many draws."""
    (example,) = annotated_language_examples([EXAMPLE])
    calls = [c for i in range(tries) if (c := make_call(example, role, random.Random(i)))]
    return {c.request.messages[-1].text: json.loads(c.reply) for c in calls}


def test_passages_that_may_or_may_not_answer_are_left_out() -> None:
    (example,) = annotated_language_examples([EXAMPLE])
    assert [p.id for p in (*example.supporting, *example.silent)] == ["1", "2", "3"]
    assert [m.question for m in example.meanings] == ["Which colour is the ball?", "Which colour is the boat?"]
    bare = MultiExample("q", (BALL,), (("red",),), "made", extra={**EXAMPLE.extra, "questions": []})
    assert annotated_language_examples([bare]) == []


def test_a_passage_without_an_answer_is_an_abstention() -> None:
    by_passage = {("North" in text, "South" in text): reply for text, reply in replies("interpret").items()}
    assert by_passage == {
        (True, False): {"answer": "red", "question": "Which colour is the ball?"},
        (False, True): {"answer": "blue", "question": "Which colour is the boat?"},
        (False, False): {"answer": None, "question": None},
    }


def test_all_meanings_are_written_in_the_order_of_the_passages_and_none_without_them() -> None:
    for text, reply in replies("clarify_long").items():
        order = sorted((text.index(word), answer) for word, answer in (("North", "red"), ("South", "blue")) if word in text)
        assert [i["answer"] for i in reply["interpretations"]] == [answer for _, answer in order]
    assert {len(reply["interpretations"]) for reply in replies("clarify_long").values()} == {0, 2}


def test_a_claim_is_true_with_its_passage_alone() -> None:
    calls = replies("verify", 200)
    assert {reply["supported"] for reply in calls.values()} == {True, False}
    for text, reply in calls.items():
        right = [(BALL, "red", "ball"), (BOAT, "blue", "boat")]
        expected = any(
            passage[0] in text and f"<answer>\n{answer}\n" in text and ("it?" in text or f"the {thing}?" in text)
            for passage, answer, thing in right
        )
        assert reply["supported"] == expected


def test_the_next_answer_is_none_of_those_known_and_its_quotation_holds_it() -> None:
    calls = replies("next_answer", 100)
    for text, reply in calls.items():
        known = text.partition("<answers>")[2].partition("</answers>")[0]
        if reply["answer"]:
            assert reply["answer"] not in known
            assert reply["answer"] in reply["quotation"]
            assert reply["quotation"] in text
        else:
            assert {a for a, title in (("red", "North"), ("blue", "South")) if title in text} <= set(known.split())
    assert {bool(reply["answer"]) for reply in calls.values()} == {True, False}


@pytest.mark.parametrize("role", sorted(ROLES))
def test_the_parser_of_a_run_accepts_every_reply(role: str) -> None:
    """The call that replies the target has not failed, and its prompt is the compact one."""
    (example,) = annotated_language_examples([EXAMPLE])
    for i in range(30):
        call = make_call(example, role, random.Random(i))
        if call is None:
            continue
        assert call.request.purpose == role
        (completion,) = [c for _, c in ScriptedLanguageModel({role: call.reply}).stream([call.request], float("inf"))]
        assert (completion.error, completion.parsed is not None) == ("", True)
        assert len(call.request.messages) == 2
    prompt = load_prompt(role, PROMPTS)
    assert [m for m, _ in prompt.messages] == ["system", "user"]
    assert prompt.holes == load_prompt(role).holes


def test_what_a_run_makes_of_the_replies() -> None:
    """The roles return what the example says."""
    (example,) = annotated_language_examples([EXAMPLE])

    def replying(role: str, wanted: Callable[[Any], bool]) -> PromptedGenerator:
        calls = (make_call(example, role, random.Random(i)) for i in range(200))
        reply = next(c.reply for c in calls if c and wanted(json.loads(c.reply)))
        return PromptedGenerator(ScriptedLanguageModel({role: reply}), prompts=PROMPTS)

    passages = [Passage(str(i), *p) for i, p in enumerate((BALL, BOAT), 1)]
    run = Run.of(60)
    long = replying("clarify_long", lambda r: len(r["interpretations"]) == 2).clarify_long("Which?", passages, run)
    assert long is not None
    assert {(i.answer, i.question, i.passage_id) for i in long} == {
        ("red", "Which colour is the ball?", "1"),
        ("blue", "Which colour is the boat?", "2"),
    }
    answer = replying("next_answer", lambda r: r["answer"] == "red").next_answer("Which?", passages, ["blue"], run)
    assert answer is not None
    assert (answer[0], answer[1].passage_id) == ("red", "1")
    imagined = replying("pseudo_interpretations", lambda r: True).pseudo_interpretations("Which?", 5, run)
    assert imagined == ["Which colour is the ball?", "Which colour is the boat?"]
    claim = Claim("Which?", "red", (passages[0],))
    assert replying("verify", lambda r: r["supported"]).verify([claim], run) == [True]
    assert replying("relax", lambda r: True).relax("Which colour is the ball?", run)
    text = replying("long_answer", lambda r: True).long_answer("Which?", long, passages, run)
    assert ("red" in text, "blue" in text) == (True, True)


def test_prompt_questions_without_passages_are_asked_for_their_meanings_alone(tmp_path: Path) -> None:
    pairs = [{"question": f"Who led the {kind}?", "answer": [name]} for kind, name in (("film", "A"), ("series", "B"))]
    file = tmp_path / "ambignq.json"
    file.write_text(json.dumps([{"question": "Who led it?", "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}]))
    (example,) = ambignq_language_examples(file)
    calls = {role: make_call(example, role, random.Random(0)) for role in ROLES}
    assert [role for role, call in calls.items() if call] == ["pseudo_interpretations"]
    assert json.loads(calls["pseudo_interpretations"].reply) == {  # type: ignore[union-attr]
        "questions": ["Who led the film?", "Who led the series?"]
    }


def test_a_row_is_the_prompt_of_a_run_and_only_its_reply_is_learned(base: Path) -> None:
    tokenizer, network = new_decoder(DecoderConfig(str(base), 2, 2), chat_tokenizer)
    model = LocalModel(network.decoder, tokenizer, "tiny")
    (example,) = annotated_language_examples([EXAMPLE])
    call = make_call(example, "answer", random.Random(0))
    assert call is not None
    ids, _, _, targets = row(model, call)
    learned = [t for t in targets if t != IGNORED]
    assert tokenizer.decode(learned) == f"{call.reply}<|im_end|>"
    assert tokenizer.decode(ids) == model.prompt(call.request) + call.reply
    first = targets.index(learned[0])
    assert ids[first + 1 :] == learned[:-1]
    rows = collate([(ids, list(range(len(ids))), [0] * len(ids), targets)])
    assert rows.mask[0, 0, 3].tolist() == [True] * 4 + [False] * (len(ids) - 4)


def test_examples_without_disambiguated_questions_are_refused(base: Path) -> None:
    tokenizer, network = new_decoder(DecoderConfig(str(base), 2, 2), chat_tokenizer)
    with pytest.raises(InputError, match="--annotated"):
        LanguageTask([([], 1.0)], [], LocalModel(network.decoder, tokenizer, "tiny"), 100)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained for two steps by the command."""
    folder = tmp_path_factory.mktemp("data")
    questions = [
        {
            "question": f"Which colour is thing {i}?",
            "split": "held out" if i == 3 else "train",
            "annotations": [
                {
                    "type": "multipleQAs",
                    "qaPairs": [
                        {"question": f"Which colour is the {what} {i}?", "answer": [colour], "passages": [f"{what}{i}"]}
                        for what, colour in (("ball", "red"), ("boat", "blue"))
                    ],
                }
            ],
        }
        for i in range(4)
    ]
    (folder / "questions.json").write_text(json.dumps(questions))
    lines = [
        f"{what}{i}\tThing {i}, the {what}, is {colour}.\t{what} {i}"
        for i in range(4)
        for what, colour in (("ball", "red"), ("boat", "blue"))
    ]
    (folder / "passages.tsv").write_text("\n".join(["id\ttext\ttitle", *lines]) + "\n")
    out = tmp_path_factory.mktemp("runs") / "language"
    words = f"train language --annotated {folder} --base {base} --rank 2 --layers 2 --steps 2 --out {out}"
    assert main([*words.split(), "--batch-tokens", "2000", "--precision", "fp32", "--head-lr", "0.01"]) == 0
    return out


def test_a_training_logs_a_figure_of_each_role_and_its_result_is_asked(trained: Path) -> None:
    last = json.loads((trained / "log.jsonl").read_text().splitlines()[-1])
    assert (last["step"], 0 < last["figure"] < 1) == (2, True)
    assert {"interpret", "verify", "clarify_long"} <= set(last)
    settings = Settings(lm_local=str(trained / "last"), device="cpu", lm_max_tokens=8)
    require_language_model(settings)
    generator = load_language_generator(settings)
    run = Run.of(60)
    generator.answer("Which colour is the ball?", [Passage("1", *BALL)], run)
    assert run.calls[-1].prompt_tokens > 0
    assert generator.prompts == PROMPTS
    assert generator.about["digest"]
    other = load_language_generator(Settings(lm_local=str(trained / "last"), device="cpu"))
    assert other.model is generator.model  # loaded once


def test_the_merged_weights_say_what_the_trained_network_says(trained: Path) -> None:
    import torch

    tokenizer, network = load_decoder(trained / "last", "language", chat_tokenizer)
    ids = tokenizer("Which colour?", return_tensors="pt")["input_ids"]
    merged = load_bundled(trained / "last", "cpu").model
    with torch.inference_mode():
        logits = network.decoder(ids).logits
        assert (logits - merged.float()(ids).logits).abs().max() < 0.2 * logits.abs().max()


def test_the_bundled_one_is_used_where_none_is_configured(
    trained: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.models.language.loading.BUNDLED", tmp_path)
    with pytest.raises(NoLanguageModelError, match="train language"):
        require_language_model(Settings())
    (tmp_path / "language").symlink_to(trained / "last")
    require_language_model(Settings())
    assert load_language_generator(Settings(device="cpu")).prompts == PROMPTS
    assert load_language_generator(Settings(lm_url="scripted:")).prompts is None
    (trained / "last" / "config.json").rename(tmp_path / "kept")
    try:
        (trained / "last" / "config.json").write_text("{")
        with pytest.raises(NoLanguageModelError, match="damaged"):
            require_language_model(Settings())
    finally:
        (tmp_path / "kept").rename(trained / "last" / "config.json")


def test_another_kind_of_weights_is_refused(base: Path, tmp_path: Path) -> None:
    _, network = new_decoder(DecoderConfig(str(base), 2, 2), chat_tokenizer)
    save_decoder("writer", network, tmp_path, {})
    with pytest.raises(CheckpointError, match="does not hold a language model"):
        load_decoder(tmp_path, "language", chat_tokenizer)
