"""Runs a short training: frameworks.py CASE DIR.

The framework prints, or writes into DIR, what it always does. What the training
itself knows goes into DIR/known.json, as [metric, step, value, tolerance], where
the tolerance is what the framework's rounding takes away. A step of null is not
compared.
"""

import json
import os
import pathlib
import sys

from framework_data import batches, groups, numbers, tensors

case, root = sys.argv[1], pathlib.Path(sys.argv[2])
facts = []


def know(metric, step, value, decimals=None, digits=None):
    value = float(value)
    tolerance = 1e-12 * abs(value)
    if decimals is not None:
        tolerance = 0.51 * 10**-decimals
    if digits is not None:
        tolerance = 5.1 * abs(value) * 10**-digits
    facts.append([metric, step, value, tolerance])


def tqdm():
    from tqdm import tqdm

    bar = tqdm(range(20), mininterval=0)
    for i in bar:
        loss, score = (i + 1) ** -4, -(i + 1) / 7
        bar.set_postfix(loss=loss, score=score)
        know("loss", None, loss, digits=3)
        know("score", None, score, digits=3)


def tqdm_epochs():
    from tqdm import tqdm

    for epoch in range(3):
        with tqdm(range(5), desc=f"Epoch {epoch}", mininterval=0) as bar:
            for i in bar:
                loss = 10.0 ** -(epoch * 2) / (i + 1)
                bar.set_postfix({"train/loss": loss})
        know("train/loss", epoch, loss, digits=3)


def xgboost():
    import xgboost

    a, b, c, d = numbers()
    history = {}
    xgboost.train(
        {"objective": "reg:squarederror", "eval_metric": ["rmse", "mape"], "nthread": 1}, xgboost.DMatrix(a, b), 12,
        evals=[(xgboost.DMatrix(a, b), "train"), (xgboost.DMatrix(c, d), "eval")], evals_result=history,
    )
    for data, metrics in history.items():
        for metric, values in metrics.items():
            for step, value in enumerate(values):
                know(f"{data}-{metric}", step, value, decimals=5)


def xgboost_rank():
    import xgboost

    x, y, sizes = groups()
    data, history = xgboost.DMatrix(x, y), {}
    data.set_group(sizes)
    params = {"objective": "rank:ndcg", "eval_metric": ["ndcg@3", "error@0.7"], "nthread": 1}
    xgboost.train(params, data, 8, evals=[(data, "eval")], evals_result=history)
    for metric, values in history["eval"].items():
        for step, value in enumerate(values):
            know(f"eval-{metric}", step, value, decimals=5)


def xgboost_cv():
    import xgboost

    a, b, _, _ = numbers()
    table = xgboost.cv({"nthread": 1}, xgboost.DMatrix(a, b), 6, nfold=3, verbose_eval=True, as_pandas=False)
    for step, value in enumerate(table["test-rmse-mean"]):
        know("test-rmse", step, value, decimals=5)


def lightgbm():
    import lightgbm

    a, b, c, d = numbers()
    history, train = {}, lightgbm.Dataset(a, b)
    lightgbm.train(
        {"metric": ["l2", "mape"], "num_threads": 1}, train, 40, valid_sets=[train, lightgbm.Dataset(c, d, reference=train)],
        valid_names=["train", "valid_0"], callbacks=[lightgbm.log_evaluation(4), lightgbm.record_evaluation(history)],
    )
    for data, metrics in history.items():
        for metric, values in metrics.items():
            for n, value in enumerate(values, 1):
                if n % 4 == 0:
                    know(f"{data}'s {metric}", n, value, digits=6)


def lightgbm_rank():
    import lightgbm

    x, y, sizes = groups()
    history, train = {}, lightgbm.Dataset(x, y, group=sizes)
    lightgbm.train(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [3], "num_threads": 1, "verbosity": -1}, train, 5,
        valid_sets=[lightgbm.Dataset(x, y, group=sizes, reference=train)],
        callbacks=[lightgbm.log_evaluation(1), lightgbm.record_evaluation(history)],
    )
    for n, value in enumerate(history["valid_0"]["ndcg@3"], 1):
        know("valid_0's ndcg@3", n, value, digits=6)


def catboost():
    import catboost

    a, b, c, d = numbers()
    model = catboost.CatBoostRegressor(iterations=12, thread_count=1, allow_writing_files=False, learning_rate=0.5)
    model.fit(a, b, eval_set=(c, d))
    history = model.get_evals_result()
    for name, data in (("learn", "learn"), ("test", "validation")):
        for step, value in enumerate(history[data]["RMSE"]):
            know(name, step, value, digits=6)


def pytorch():
    """The loop of PyTorch's quickstart."""
    import torch

    data, model = batches(), torch.nn.Linear(4, 1)
    optimizer, size = torch.optim.SGD(model.parameters(), lr=0.2), len(data.dataset)
    for epoch in range(4):
        print(f"Epoch {epoch + 1}\n-------------------------------")
        for n, (x, y) in enumerate(data):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if n % 4 == 0:
                print(f"loss: {loss.item():>7f}  [{(n + 1) * len(x):>5d}/{size:>5d}]")
        with torch.no_grad():
            tests = [torch.nn.functional.mse_loss(model(x), y).item() for x, y in data]
            right = sum(((model(x) - y).abs() < 0.1).sum().item() for x, y in data) / size
        print(f"Test Error: \n Accuracy: {100 * right:>0.1f}%, Avg loss: {sum(tests) / len(tests):>8f} \n")
        know("Accuracy", epoch + 1, 100 * right, decimals=1)
        know("loss", epoch + 1, sum(tests) / len(tests), decimals=6)


def pytorch_exponent():
    """A small loss with an exponent, and a learning rate beside it."""
    import torch

    for step in range(3):
        loss = torch.tensor(3e-5 / (step + 1))
        print(f"step {step} loss: {loss:.3e} lr: {0.1:g}")
        know("loss", step, loss, digits=4)


def keras_fit(keras, verbose):
    import numpy

    keras.utils.set_random_seed(0)
    x = numpy.random.default_rng(0).normal(size=(64, 4))
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.2), "mse", metrics=["mae"])
    history = model.fit(x, x.sum(1), validation_split=0.25, epochs=6, batch_size=8, verbose=verbose).history
    for metric in ("loss", "val_loss", "val_mae"):
        for epoch, value in enumerate(history[metric], 1):
            know(metric, epoch, value, **({"decimals": 4} if abs(value) > 1e-3 else {"digits": 5}))


def keras(verbose=1):
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    keras_fit(keras, verbose)


def keras_lines():
    keras(verbose=2)


def keras2(verbose=1):
    import tf_keras

    keras_fit(tf_keras, verbose)


def keras2_lines():
    keras2(verbose=2)


def module():
    import lightning
    import torch

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def loss(self, batch, name):
            loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
            self.log(name, loss, prog_bar=True)
            return loss

        def training_step(self, batch, _):
            return self.loss(batch, "train_loss")

        def validation_step(self, batch, _):
            self.loss(batch, "val_loss")

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.02)

    return Module()


def lightning_fit(with_steps, **options):
    import lightning

    class Keep(lightning.Callback):
        def on_train_epoch_end(self, trainer, _):
            step = trainer.current_epoch if with_steps is None else with_steps(trainer)
            know("val_loss", step, trainer.callback_metrics["val_loss"], digits=3 if with_steps is None else 7)

    callbacks = [Keep(), *options.pop("callbacks", [])]
    trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", default_root_dir=root, num_sanity_val_steps=0, callbacks=callbacks, **options)
    data = batches()
    trainer.fit(module(), data, data)


def lightning():
    from lightning.pytorch.callbacks import TQDMProgressBar

    lightning_fit(None, logger=False, enable_checkpointing=False, callbacks=[TQDMProgressBar()])


def lightning_csv():
    from lightning.pytorch.loggers import CSVLogger

    lightning_fit(lambda trainer: trainer.global_step - 1, logger=CSVLogger(root), log_every_n_steps=2, enable_progress_bar=False)


def transformers():
    import torch
    import transformers as hf

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2))
    data = []
    for _ in range(32):
        tokens = torch.randint(0, 32, (8,))
        data.append({"input_ids": tokens, "labels": tokens})
    options = hf.TrainingArguments(
        str(root), num_train_epochs=3, logging_steps=4, eval_strategy="epoch", per_device_train_batch_size=8, report_to=[],
        use_cpu=True, save_strategy="no", learning_rate=1e-2,
    )
    trainer = hf.Trainer(model, options, train_dataset=data, eval_dataset=data)
    trainer.train()
    for entry in trainer.state.log_history:
        for metric in ("loss", "eval_loss"):
            if metric in entry:
                know(metric, round(entry["epoch"]), entry[metric], digits=4)


def accelerate():
    import torch
    from accelerate import Accelerator

    accelerator, data = Accelerator(cpu=True), batches()
    model = torch.nn.Linear(4, 1)
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.2), data)
    for epoch in range(3):
        for x, y in data:
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        metrics = {"mse": loss.item(), "negative": -loss.item()}
        accelerator.print(f"epoch {epoch}:", metrics)
        for name, value in metrics.items():
            know(name, epoch, value)


def mmengine():
    import torch
    from mmengine.evaluator import BaseMetric, Evaluator
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Model(BaseModel):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, y, mode="tensor"):
            out = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(out, y)} if mode == "loss" else [(out, y)]

    class Error(BaseMetric):
        default_prefix = "test"

        def process(self, _, outputs):
            self.results += [torch.nn.functional.mse_loss(out, y).item() for out, y in outputs]

        def compute_metrics(self, results):
            error = sum(results) / len(results)
            know("test/mse", None, error, decimals=4)
            return {"mse": error}

    Runner(
        model=Model(), work_dir=str(root), train_dataloader=batches(), val_dataloader=batches(), val_evaluator=Evaluator(Error()),
        val_cfg={}, train_cfg={"by_epoch": True, "max_epochs": 3, "val_interval": 1},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.02}}, default_hooks={"logger": {"type": "LoggerHook", "interval": 4}},
    ).train()


def fastai():
    import torch
    from fastai.basics import Learner, MSELossFlat, mae
    from fastai.callback.progress import CSVLogger
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader

    data = tensors()
    loaders = DataLoaders(DataLoader(data, bs=8), DataLoader(data, bs=8))
    learner = Learner(loaders, torch.nn.Linear(4, 1), loss_func=MSELossFlat(), metrics=[mae], cbs=[CSVLogger()], path=root)
    learner.fit(3, lr=0.1)
    for epoch, (_, valid, error) in enumerate(learner.recorder.values):
        know("valid_loss", epoch, valid)
        know("mae", epoch, error)


def ultralytics():
    import numpy
    from PIL import Image

    os.environ["YOLO_CONFIG_DIR"] = str(root)
    rng = numpy.random.default_rng(0)
    for part in ("train", "val"):
        images, labels = root / "images" / part, root / "labels" / part
        images.mkdir(parents=True)
        labels.mkdir(parents=True)
        for n in range(8):
            picture = rng.integers(0, 80, (64, 64, 3), dtype=numpy.uint8)
            picture[16:48, 16:48] = 255
            Image.fromarray(picture).save(images / f"{n}.png")
            (labels / f"{n}.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    (root / "data.yaml").write_text(f"path: {root}\ntrain: images/train\nval: images/val\nnames: {{0: square}}\n")
    from ultralytics import YOLO

    model = YOLO("yolo11n.yaml")

    def keep(trainer):
        if "val/box_loss" not in trainer.metrics:
            return  # the best model is looked at once more at the end
        for metric in ("val/box_loss", "metrics/mAP50-95(B)"):
            know(metric, trainer.epoch + 1, trainer.metrics[metric], digits=5)

    model.add_callback("on_fit_epoch_end", keep)
    model.train(
        data=str(root / "data.yaml"), epochs=2, imgsz=64, batch=4, workers=0, device="cpu", project=str(root / "runs"),
        plots=False, pretrained=False,
    )


def wandb():
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(root))
    import wandb

    run = wandb.init(project="golden")
    for step in range(5):
        run.log({"loss": 1e-5 / (step + 1), "score": -step / 7})
        know("loss", step, 1e-5 / (step + 1))
        know("score", step, -step / 7)
    run.finish()


globals()[case]()
(root / "known.json").write_text(json.dumps(facts))
