"""What the pages say of a model holds for every family: parts sum to the logit, the last lens is the logits."""

from pathlib import Path

import numpy as np
import pytest
import torch

import gptviz
from gptviz import trace
from gptviz.analysis import (
    attention_stages,
    contribution,
    head_output,
    logit_attribution,
    logit_lens,
    projection_error,
)
from tests.test_families import CASES, NAMES, VOCAB, saved, theirs

IDS = torch.randint(VOCAB, (20,), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("family", "changes"), CASES, ids=NAMES)
def test_every_page_s_sums_hold(tmp_path: Path, family: str, changes: dict[str, object]):
    model = gptviz.load(saved(theirs(family, **changes), tmp_path / "theirs")).model
    run = trace(model, IDS)
    for token in (3, 40):
        parts = logit_attribution(model, run, 11, token)
        assert sum(parts.values()) == pytest.approx(float(run.logits[11, token]), rel=1e-4, abs=1e-4)
    np.testing.assert_allclose(logit_lens(model, run)[-1], run.logits.numpy(), rtol=1e-4, atol=1e-4)
    for layer in range(model.config.n_layer):
        for head in range(model.config.n_head):
            output = head_output(model, run, layer, head)
            assert max(output.mix_error, output.sum_error) < 1e-4
            assert projection_error(model, run, layer, head) < 1e-4
            assert contribution(run, layer, head, 11, 5).error < 1e-4
            stages = attention_stages(run, layer, head)
            seen = np.isfinite(stages.masked)
            np.testing.assert_allclose(stages.biased[seen], stages.masked[seen], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("family", "changes"), CASES, ids=NAMES)
def test_scores_that_were_not_kept_are_made_again(tmp_path: Path, family: str, changes: dict[str, object]):
    model = gptviz.load(saved(theirs(family, **changes), tmp_path / "theirs")).model
    run = trace(model, IDS)
    without = trace(model, IDS, keep=[name for name in run.activations if not name.endswith("hook_attn_scores")])
    for layer in range(model.config.n_layer):
        for head in range(model.config.n_head):
            captured, again = (attention_stages(each, layer, head) for each in (run, without))
            np.testing.assert_array_equal(np.isneginf(again.masked), np.isneginf(captured.masked))
            np.testing.assert_allclose(again.masked, captured.masked, rtol=1e-4, atol=1e-4)
            softmax = torch.from_numpy(again.masked).softmax(-1).numpy()
            np.testing.assert_allclose(softmax, again.pattern, atol=1e-5)
