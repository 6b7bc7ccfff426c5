"""Memory of a GPU for the inputs of a call."""

import random

import tensors
from case import extent


class OnDevice:
    """Memory of the GPU in the form from which torch makes a tensor."""

    def __init__(self, address, length):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (length,), "typestr": "|u1", "version": 3}


class Pool:
    """The memory in which the inputs of a call lie on the GPU: at other addresses in each call."""

    ALIGNMENT = 256

    def __init__(self, address, length):
        self.address, self.length = address, length

    def draw(self, lengths):
        """Addresses for blocks of these lengths, in a random order with random gaps."""
        padded = [-(-length // self.ALIGNMENT) * self.ALIGNMENT for length in lengths]
        free = (self.length - sum(padded)) // self.ALIGNMENT
        cuts = sorted(random.randint(0, free) for _ in padded)
        order = random.sample(range(len(padded)), len(padded))
        addresses, used = [0] * len(padded), 0
        for cut, index in zip(cuts, order):
            addresses[index] = self.address + cut * self.ALIGNMENT + used
            used += padded[index]
        return addresses

    @staticmethod
    def like(tensor, address):
        """A tensor at an address, with the type, shape and strides of another."""
        torch = tensors.import_torch()
        _, length, _ = extent(tensor)
        if length == 0:
            return torch.empty_like(tensor)
        memory = torch.as_tensor(OnDevice(address, length), device=tensor.device)
        return memory.view(tensor.dtype).as_strided(tensor.shape, tensor.stride())
