"""What loading a model costs: time against reading each tensor once with safetensors, and the peak of memory.

    python -m benchmarks.load [--layers 12] [--family gpt2] [--repeats 5]

A model of GPT-2 small's size is made up in a temporary folder; each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPES = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", dict(n_embd=768, n_head=12), "n_layer"),
    "llama": (
        "LlamaConfig",
        "LlamaForCausalLM",
        dict(hidden_size=768, intermediate_size=2048, num_attention_heads=12, num_key_value_heads=4, vocab_size=32000),
        "num_hidden_layers",
    ),
}

# Both children have torch imported and the file in the system's cache; both report seconds, and how much more memory
# they held at the most than just before they began. Seconds of the processor: a busy machine counts against none.
CHILD = """
import sys, time, torch, gptviz.checkpoints
from pathlib import Path
from safetensors import safe_open

torch.set_num_threads(1)

def status(field):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024

def read_each(folder):
    with safe_open(folder + "/model.safetensors", framework="pt") as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}

gptviz.load("stories")
Path("/proc/self/clear_refs").write_text("5")
before, began = status("VmRSS"), time.process_time()
kept = {"load": gptviz.load, "read": read_each}[sys.argv[1]](sys.argv[2])
seconds = time.process_time() - began
print(seconds, status("VmHWM") - before)
"""


def made_up(folder: Path, family: str, layers: int) -> int:
    """Saves a model with random weights; returns its size in bytes."""
    import transformers

    config, model, shape, depth = SHAPES[family]
    made = getattr(transformers, model)(getattr(transformers, config)(**shape, **{depth: layers}))
    made.save_pretrained(folder)
    return sum(parameter.numel() for parameter in made.parameters()) * 4


def measured(what: str, folder: Path) -> tuple[float, int]:
    """Seconds, and bytes at the most."""
    command = [sys.executable, "-c", CHILD, what, str(folder)]
    seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--family", choices=SHAPES, default="gpt2")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        size = made_up(Path(name), options.family, options.layers)
        runs = [(measured("read", Path(name)), measured("load", Path(name))) for _ in range(options.repeats)]
    read, load = (statistics.median(run[side][0] for run in runs) for side in (0, 1))
    peak = max(run[1][1] for run in runs)
    result = dict(weights_mb=size / 1e6, read_s=read, load_s=load, time_ratio=load / read, memory_ratio=peak / size)
    print(json.dumps({key: round(value, 3) for key, value in result.items()}))


if __name__ == "__main__":
    main()
