"""The ablations of AmbigPrompt's Table 3 for the span answerer: each variant tuned on the same examples, seed and number of steps.

    python -m benchmarks.training.ablations --data FOLDER [--pretrained CHECKPOINT] [--steps 200] [--only NAME ...]

`w/o post-pretraining` starts from the reader, the others from the post-pretrained answerer.  `zero-shot` (appendix B.2; Table 5) is that
answerer itself: single-answer supervision only.  Judged on data/starter (never trained on) over the 10 passages of its own index.
A variant that is already trained is not trained again.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass

from benchmarks.quality.comparison import Test, add_arguments, post_pretrained, shown, tune
from core.settings import Settings, quiet_libraries
from core.training.data.held_out_passages import WRITTEN


@dataclass(frozen=True)
class Variant:
    prompting: str = "interleaved"
    pretrained: bool = True
    tuned: bool = True


VARIANTS = {
    "AmbigPrompt": Variant(),
    "w/o task-adaptive post-pretraining": Variant(pretrained=False),
    "w/o prompting model": Variant("learned"),
    "w/o interleaving prompting": Variant("separate"),
    "zero-shot": Variant(tuned=False),
}


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--only", nargs="*", choices=list(VARIANTS), default=list(VARIANTS))
    args = parser.parse_args()
    settings = Settings.from_env()
    test = Test(args, settings)
    print(f"{len(test.questions)} questions, {args.steps} steps, seed {args.seed}\n", flush=True)
    print("| variant | F1 all | F1 multi | answers |\n|---|--:|--:|--:|", flush=True)
    for name in args.only:
        variant = VARIANTS[name]
        out = settings.runs_dir / f"ablation-{args.steps}-{args.seed}" / name.replace("/", "").replace(" ", "-")
        weights = post_pretrained(args, settings.runs_dir) if variant.pretrained else args.reader
        if variant.tuned:
            weights = tune(
                args,
                weights,
                out,
                multi=args.data / "multi" / "train.jsonl.gz",
                ambignq=args.data / "ambignq" / "train_light.json",
                annotated=WRITTEN,
                prompting=variant.prompting,
            )
        row = test.measure(weights)
        print(f"| {name} | {shown(row)}", flush=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / "starter.json").write_text(json.dumps({**row, "steps": args.steps, "seed": args.seed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
