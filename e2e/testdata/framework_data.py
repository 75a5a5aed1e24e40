"""What the trainings of frameworks.py learn from."""


def numbers():
    """A regression that is learnt down to small losses."""
    import numpy

    rng = numpy.random.default_rng(1)
    x = rng.normal(size=(400, 5))
    y = x @ [1, -2, 0.5, 0, 3]
    return x[:300], y[:300], x[300:], y[300:]


def groups():
    """Documents to rank, in groups of ten."""
    x, y, _, _ = numbers()
    return x, (y > 1).astype(int), [10] * 30


def tensors():
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(64, 4)
    return torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))


def batches():
    import torch

    return torch.utils.data.DataLoader(tensors(), batch_size=8)
