"""Trains with DistributedDataParallel in as many processes as torchrun starts, on CPUs
with gloo or on GPUs with NCCL. Rank 0 prints the mean loss of all ranks."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

gpus = torch.cuda.is_available()
dist.init_process_group("nccl" if gpus else "gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
if gpus:
    torch.cuda.set_device(device)
else:
    torch.set_num_threads(1)

# In place of a data set: each rank has rows of its own, as with a DistributedSampler.
torch.manual_seed(rank)
x = torch.randn(256, 8, device=device)
y = x.sum(1, keepdim=True) + 0.1 * torch.randn(256, 1, device=device)

model = DistributedDataParallel(torch.nn.Linear(8, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
for epoch in range(args.epochs):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    sums = torch.stack([loss.detach(), torch.ones_like(loss)])
    dist.all_reduce(sums)
    if rank == 0:
        print(f"step={epoch} loss={sums[0] / sums[1]:.6f} ranks={sums[1]:g}", flush=True)
dist.destroy_process_group()
