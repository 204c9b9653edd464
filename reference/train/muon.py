"""The optimizer: Muon (Keller Jordan 2024) for the matrices inside the layers, AdamW for the
embedding and the norms. Matrices of one shape are stacked, so that a step is a few products.
"""

import torch


def orthogonalized(g, steps=5):
    """Newton-Schulz iterations towards U V^T for each matrix in g [n, rows, columns], in bf16."""
    x = g.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.transpose(1, 2)
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
    for _ in range(steps):
        a = x @ x.transpose(1, 2)
        b = torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, b, x, beta=3.4445)
    return x.transpose(1, 2) if tall else x


class Optimizer:
    """lr: Muon's, per unit of update norm; adam_lr: for embedding and norms. Both are
    multiplied by `scale` (the schedule) at each step."""

    def __init__(self, model, lr=0.02, adam_lr=0.004, momentum=0.95, decay=0.01):
        self.lr, self.momentum, self.decay = lr, momentum, decay
        shapes, rest = {}, []
        for name, p in model.named_parameters():
            if p.dim() == 2 and "embed" not in name:
                shapes.setdefault(tuple(p.shape), []).append(p)
            else:
                rest.append(p)
        self.groups = [(ps, torch.zeros(len(ps), *s)) for s, ps in shapes.items()]
        self.adam_lr = adam_lr
        self.adam = torch.optim.AdamW(rest, lr=adam_lr, betas=(0.9, 0.98), eps=1e-8,
                                      weight_decay=0.0, foreach=False, fused=True)

    @torch.no_grad()
    def step(self, scale):
        for ps, m in self.groups:
            g = torch.stack([p.grad for p in ps])
            m.lerp_(g, 1 - self.momentum)
            u = orthogonalized(g.lerp(m, self.momentum)).float()
            rows, columns = ps[0].shape
            lr = self.lr * scale
            u *= -lr * max(1, rows / columns) ** 0.5
            for p, d in zip(ps, u):
                p.mul_(1 - lr * self.decay).add_(d)
        for group in self.adam.param_groups:
            group["lr"] = self.adam_lr * scale
        self.adam.step()

    def zero_grad(self):
        for ps, _ in self.groups:
            for p in ps:
                p.grad = None
        self.adam.zero_grad()

    def state_dict(self):
        return {"muon": [m for _, m in self.groups], "adam": self.adam.state_dict()}

    def load_state_dict(self, s):
        for (_, m), old in zip(self.groups, s["muon"]):
            m.copy_(old)
        self.adam.load_state_dict(s["adam"])
