"""Writes TensorBoard event files with the packages that people use, and says
what is in them.

    writers.py list             the writers whose packages are there
    writers.py WRITER DIR       write below DIR; print the scalars as JSON lines

The scalars are read back with TensorBoard's own record reader and protobuf
code, and, where the writer is told the values, compared with these first.
"""

import importlib.util
import json
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow",
                  TF_ENABLE_ONEDNN_OPTS="0", HF_HUB_OFFLINE="1")

LOSSES = [0.1, 2.5, 1 / 3, 1e-8, 123456.789, -0.0, float("inf"), float("-inf"), float("nan"), 16777217.0]


def tensorboard(root):
    """TensorBoard's own writer: simple values and tensors of every type."""
    import numpy as np
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util

    w = EventFileWriter(os.path.join(root, "train"))
    types = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
    for step, v in enumerate(LOSSES):
        value = summary_pb2.Summary.Value(tag="loss", simple_value=v)
        w.add_event(event_pb2.Event(wall_time=1.7e9 + step / 8, step=step, summary=summary_pb2.Summary(value=[value])))
    for step in range(3):
        values = []
        for t in types:
            tensor = tensor_util.make_tensor_proto(np.array(step * 3, dtype=t))
            values.append(summary_pb2.Summary.Value(tag="type/" + t, tensor=tensor))
        vector = tensor_util.make_tensor_proto(np.zeros(4, "float32"))
        values.append(summary_pb2.Summary.Value(tag="vector", tensor=vector))
        image = summary_pb2.Summary.Image(encoded_image_string=b"x" * 600_000)
        values.append(summary_pb2.Summary.Value(tag="image", image=image))
        w.add_event(event_pb2.Event(wall_time=1.7e9 + step, step=100 + step, summary=summary_pb2.Summary(value=values)))
    w.close()
    return [("train", "loss", i, np.float32(v)) for i, v in enumerate(LOSSES)]


def summary_writer(SummaryWriter, root, **options):
    import numpy as np

    told = []
    with SummaryWriter(os.path.join(root, "run"), **options) as w:
        for step, v in enumerate(LOSSES):
            w.add_scalar("loss", v, step)
            told.append(("run", "loss", step, np.float32(v)))
        w.add_histogram("weights", np.arange(10.0), 0)
        w.add_text("note", "text", 0)
        w.add_scalars("both", {"a": 1.0, "b": 2.0}, 7)
        w.add_hparams({"lr": 0.1, "batch": 32, "optimizer": "adam"}, {"hparam/accuracy": 0.5})
    return told


def torch(root):
    import numpy as np
    from torch.utils.tensorboard import SummaryWriter

    told = summary_writer(SummaryWriter, root)
    told += [("run/both_a", "both", 7, np.float32(1)), ("run/both_b", "both", 7, np.float32(2))]
    with SummaryWriter(os.path.join(root, "new")) as w:
        for step, v in enumerate(LOSSES):
            w.add_scalar("loss", v, step, new_style=True)
            w.add_scalar("double", v, step, new_style=True, double_precision=True)
            told += [("new", "loss", step, np.float32(v)), ("new", "double", step, np.float64(v))]
    return told


def tensorboardX(root):
    from tensorboardX import SummaryWriter

    return summary_writer(SummaryWriter, root)


def tensorflow(root):
    import numpy as np
    import tensorflow as tf

    told = []
    w = tf.summary.create_file_writer(os.path.join(root, "v2"))
    with w.as_default():
        for step, v in enumerate(LOSSES):
            tf.summary.scalar("loss", v, step=step)
            told.append(("v2", "loss", step, np.float32(v)))
        tf.summary.image("picture", np.zeros((1, 300, 300, 3)), step=0)
        tf.summary.histogram("weights", np.arange(10.0), step=0)
    w.close()
    with tf.Graph().as_default():
        w = tf.compat.v1.summary.FileWriter(os.path.join(root, "v1"))
        w.add_session_log(tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START), 0)
        for step, v in enumerate(LOSSES):
            value = tf.compat.v1.Summary.Value(tag="loss", simple_value=v)
            w.add_summary(tf.compat.v1.Summary(value=[value]), step)
            told.append(("v1", "loss", step, np.float32(v)))
        w.close()
    return told


def keras(root):
    import keras
    import numpy as np

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
    x, y = np.random.rand(64, 4), np.random.rand(64, 1)
    board = keras.callbacks.TensorBoard(log_dir=root, update_freq="epoch", histogram_freq=1)
    model.fit(x, y, epochs=4, validation_split=0.25, verbose=0, callbacks=[board])
    return []


def lightning(root):
    import lightning as L
    import torch
    from lightning.pytorch.loggers import TensorBoardLogger

    class Model(L.LightningModule):
        def __init__(self, lr=0.1):
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            loss = self.layer(batch).square().mean()
            self.log("train/loss", loss)
            return loss

        def validation_step(self, batch, _):
            self.log("val/loss", self.layer(batch).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)

    data = torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=8)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", log_every_n_steps=1, enable_progress_bar=False,
                        enable_model_summary=False, enable_checkpointing=False, logger=TensorBoardLogger(root))
    trainer.fit(Model(), data, data)
    return []


def transformers(root):
    import torch
    from transformers import Trainer, TrainingArguments
    from transformers.integrations import TensorBoardCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x=None, labels=None):
            out = self.layer(x)
            return {"loss": (out - labels).square().mean(), "logits": out}

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 32

        def __getitem__(self, i):
            return {"x": torch.full((4,), i / 32), "labels": torch.ones(1)}

    os.environ["TENSORBOARD_LOGGING_DIR"] = os.path.join(root, "runs", "a")
    arguments = TrainingArguments(output_dir=os.path.join(root, "out"), num_train_epochs=2, logging_steps=1, use_cpu=True,
                                  per_device_train_batch_size=8, report_to=[], save_strategy="no", disable_tqdm=True)
    Trainer(model=Model(), args=arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=[TensorBoardCallback()]).train()
    return []


WRITERS = {
    "tensorboard": (tensorboard, ["tensorboard"]),
    "torch": (torch, ["torch"]),
    "tensorboardX": (tensorboardX, ["tensorboardX"]),
    "tensorflow": (tensorflow, ["tensorflow"]),
    "keras": (keras, ["tensorflow", "keras"]),
    "lightning": (lightning, ["lightning", "torch"]),
    "transformers": (transformers, ["transformers", "torch", "accelerate"]),
}


def scalars(root):
    """Every number of rank 0 in the event files, by TensorBoard's own code."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto import event_pb2

    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if "tfevents" not in name:
                continue
            for raw in RawEventFileLoader(os.path.join(folder, name)).Load():
                event = event_pb2.Event.FromString(raw)
                for v in event.summary.value:
                    kind = v.WhichOneof("value")
                    if kind == "simple_value":
                        import numpy as np

                        number = np.float32(v.simple_value)
                    elif kind == "tensor":
                        number = array(v.tensor)
                        if number.ndim != 0 or number.dtype.kind not in "fiub":
                            continue
                        number = number[()]
                    else:
                        continue
                    yield os.path.relpath(folder, root), name, v.tag, event.step, number, event.wall_time


def array(tensor):
    """tensor_util.make_ndarray, with the types that it does not know."""
    import numpy as np
    from tensorboard.util import tensor_util

    missing = {22: ("uint32", tensor.uint32_val), 23: ("uint64", tensor.uint64_val)}
    if tensor.dtype not in missing:
        return tensor_util.make_ndarray(tensor)
    dtype, values = missing[tensor.dtype]
    shape = [d.size for d in tensor.tensor_shape.dim]
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype).reshape(shape)
    return np.array(list(values), dtype).reshape(shape)


def shown(number):
    """The shortest decimal that is the number in its own type."""
    return str(float(str(number))) if number.dtype.kind != "b" else str(float(number))


def main():
    if sys.argv[1] == "list":
        print(" ".join(n for n, (_, needs) in WRITERS.items() if all(importlib.util.find_spec(m) for m in needs)))
        return
    root = sys.argv[2]
    told = WRITERS[sys.argv[1]][0](root)
    found = list(scalars(root))
    have = {(run, tag, step, shown(number)) for run, _, tag, step, number, _ in found}
    missing = [t for t in told if (t[0], t[1], t[2], shown(t[3])) not in have]
    if missing or not found:
        sys.exit(f"told, and not in the files: {missing}; {len(found)} scalars")
    for run, name, tag, step, number, wall in found:
        print(json.dumps({"run": run, "file": name, "tag": tag, "step": step, "value": shown(number), "wall": wall}))


main()
