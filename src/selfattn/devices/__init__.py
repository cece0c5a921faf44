"""Attention on several devices: its heads dealt out to them, or its tokens.

Each device has a process of its own, its *rank*, and all ranks run the same
lines. `torch.distributed` carries tensors between them: by gloo on CPUs, by
NCCL on GPUs.
"""
