"""Two kernels of it. The candidate is slower, which one comparison decides: one that is faster would need a second."""


def doubled(x):
    return x * 2


def in_four_steps(x):
    y = x.copy()
    for _ in range(3):
        y = y + 0 * x
    return y + x
