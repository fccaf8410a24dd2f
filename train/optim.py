"""Muon for the matrices of the towers and the decoder, AdamW for everything else."""
import torch

MUON_PARTS = ("sam.", "enc.", "dec.", "neck1", "neck2", "down1", "down2", "projector")
NOT_MUON = ("rel", "mlp.gate")  # position waves and the router


def is_matrix(name, p):
    return p.ndim >= 2 and name.startswith(MUON_PARTS) and not name.endswith(NOT_MUON)


def as_matrices(name, t):
    """A parameter as a stack [k, rows, columns] of the matrices that belong together."""
    if name.endswith("qkv.weight"):
        return t.view(3, -1, t.shape[1])
    if name.endswith("gate_up_proj"):
        return t.view(t.shape[0] * 2, t.shape[1] // 2, t.shape[2])
    return t if t.ndim == 3 else t.view(1, t.shape[0], -1)


def orthogonalise(g, steps=5):
    """The nearest matrix with equal singular values, roughly: a quintic Newton-Schulz iteration (Jordan et al., Muon)."""
    x = g.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.float()


class Optimiser:
    """Gradients live in one flat buffer, so that they are cleared and scaled at once."""

    def __init__(self, model, lr, adam_lr, device):
        named = list(model.named_parameters())
        self.flat = torch.zeros(sum(p.numel() for _, p in named), device=device)
        at = 0
        for _, p in named:
            p.grad = self.flat[at:at + p.numel()].view_as(p)
            at += p.numel()
        self.lr, self.adam_lr = lr, adam_lr
        self.groups = {}  # (short side, long side) -> [(name, parameter, transposed)], momentum
        for name, p in named:
            if is_matrix(name, p):
                m = as_matrices(name, p.data)
                key = (min(m.shape[1:]), max(m.shape[1:]))
                self.groups.setdefault(key, []).append((name, p, m.shape[1] > m.shape[2]))
        self.momentum = {k: torch.zeros(sum(len(as_matrices(n, p.data)) for n, p, _ in g), *k, device=device) for k, g in self.groups.items()}
        rest = [p for n, p in named if not is_matrix(n, p)]
        self.rest = rest
        big = lambda p: p.ndim >= 2 and p.numel() > 4096
        self.adam = torch.optim.AdamW([dict(params=[p for p in rest if big(p)], weight_decay=.01),
                                       dict(params=[p for p in rest if not big(p)], weight_decay=0.)],
                                      lr=adam_lr, betas=(.9, .98), eps=1e-10, fused=device.type == "cuda")

    @torch.no_grad()
    def muon(self, lr, decay=.03, momentum=.95):
        for key, group in self.groups.items():
            buffer = self.momentum[key]
            grads = [as_matrices(n, p.grad) for n, p, _ in group]
            g = torch.cat([m.mT if t else m for m, (_, _, t) in zip(grads, group)])
            buffer.lerp_(g, 1 - momentum)
            update = orthogonalise(g.lerp(buffer, momentum))
            at = 0
            for n, p, transposed in group:
                m = as_matrices(n, p.data)
                u = update[at:at + len(m)]
                at += len(m)
                m.mul_(1 - lr * decay).add_(u.mT if transposed else u, alpha=-lr * .2 * key[1] ** .5)

    def step(self, scale):
        """scale: 0..1 of the learning rates"""
        torch.nn.utils.clip_grad_norm_(self.rest, 1.0)
        self.muon(self.lr * scale)
        for g in self.adam.param_groups:
            g["lr"] = self.adam_lr * scale
        self.adam.step()
        self.flat.zero_()
