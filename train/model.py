"""The miniature DeepSeek-OCR-2 for training: the network of the big model, small.

  view -> SAM tower -> 16x16 (1024 px) or 12x12 (768 px) tokens -> encoder with as many queries -> query outputs -> projector
  page -> [tiles' queries][global view's queries][separator] -> decoder -> text

Three liberties, none of which survives the export:
  - a page is grey, so the patch embedding has one channel; the export gives each of R, G, B a third of it;
  - relative positions are sums of a few frequencies, R[d] = sum_f a_f cos(w_f d) + b_f sin(w_f d), so that the bias becomes part of
    one dot product and fast attention kernels apply; the export evaluates the tables;
  - all experts are computed, those not chosen with weight 0: the same result.
Heads that only help to learn (characters of patches and of query cells, place of the next token) are dropped at export.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from charset import N_CLASSES

SIZES = {
    "mini": dict(vocab=2048,
                 sam=dict(dim=256, heads=4, layers=6, global_at=[3], window=16, neck=160, down=[256, 384]),
                 enc=dict(dim=384, heads=6, kv=2, layers=5, mlp=896, theta=10000.0),
                 dec=dict(dim=320, heads=5, layers=6, mlp=896, experts=6, top_k=2, width=256, shared=1, theta=10000.0),
                 cell_head=384),
    "tiny": dict(vocab=2048,
                 sam=dict(dim=32, heads=2, layers=2, global_at=[1], window=16, neck=32, down=[32, 64]),
                 enc=dict(dim=64, heads=2, kv=2, layers=1, mlp=64, theta=10000.0),
                 dec=dict(dim=64, heads=2, layers=2, mlp=64, experts=4, top_k=2, width=32, shared=1, theta=10000.0),
                 cell_head=32),
}
GRID = 64              # patches a side of the 1024 px view, and of the position tables
PLACES = 64            # bins a side for the place of the next token


class SamAttention(nn.Module):
    """Attention over n x n tokens with decomposed relative positions. table_side is the side that its table is made for: on a smaller
    grid the table is stretched, so a distance d counts as d * (2 table_side - 1) / (2 n - 1)."""

    def __init__(self, dim, heads, table_side, frequencies):
        super().__init__()
        self.heads, self.head_dim, self.table_side = heads, dim // heads, table_side
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.n_freq = len(frequencies)
        self.register_buffer("freq", math.pi * torch.tensor(frequencies, dtype=torch.float64), persistent=False)
        self.rel = nn.Parameter(torch.randn(4 * self.n_freq, self.head_dim) * .02)  # cos and sin of rows, cos and sin of columns
        for side in {table_side, 48 if table_side == GRID else table_side}:
            self.register_buffer("keys%d" % side, self.key_waves(side), persistent=False)

    def key_waves(self, n):
        w = self.freq * ((2 * self.table_side - 1) / (2 * n - 1))
        t = torch.arange(n, dtype=torch.float64)[:, None] * w
        c, s = t.cos().float(), t.sin().float()
        rows = lambda v: v[:, None].expand(n, n, -1).reshape(n * n, -1)
        columns = lambda v: v[None].expand(n, n, -1).reshape(n * n, -1)
        return torch.stack([rows(c), rows(s), columns(c), columns(s)], 1)  # [n * n, 4, n_freq]

    def tables(self):
        """The relative position tables [2 side - 1, head_dim] of rows and of columns."""
        n = self.table_side
        d = torch.arange(-(n - 1), n, dtype=torch.float64)[:, None] * self.freq.cpu()
        a = self.rel.detach().double().cpu().view(4, self.n_freq, self.head_dim)
        return (d.cos() @ a[0] + d.sin() @ a[1]).float(), (d.cos() @ a[2] + d.sin() @ a[3]).float()

    def forward(self, x, waves):
        """x [batch, n * n, dim]; waves: key_waves of this n"""
        b, n, dim = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.head_dim).unbind(2)
        waves = waves.to(q.dtype).view(1, n, 1, 4, self.n_freq)
        rows_c, rows_s, cols_c, cols_s = F.linear(q, self.rel.to(q.dtype)).view(b, n, self.heads, 4, self.n_freq).unbind(3)
        kr_c, kr_s, kc_c, kc_s = waves.unbind(3)
        # cos w(y - k) = cos wy cos wk + sin wy sin wk, and likewise the sine: what belongs to the key is `waves`
        q = torch.cat([q * self.head_dim ** -.5, rows_c * kr_c + rows_s * kr_s, rows_c * kr_s - rows_s * kr_c,
                       cols_c * kc_c + cols_s * kc_s, cols_c * kc_s - cols_s * kc_c], -1)
        k = torch.cat([k, waves.reshape(1, n, 1, -1).expand(b, n, self.heads, 4 * self.n_freq)], -1)
        v = F.pad(v, (0, 4 * self.n_freq))
        o = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=1.0)
        return self.proj(o[..., :self.head_dim].transpose(1, 2).reshape(b, n, dim))


class SamLayer(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.window = window  # 0: over the whole view
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        frequencies = [k / (window - 1) for k in (0, 1, 2, 3, 5, 8, 11, 15)] if window else [1 / 64, 1 / 32, 1 / 16, 1 / 8]
        self.attn = SamAttention(dim, heads, window or GRID, frequencies)
        self.lin1, self.lin2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        """x [batch, side, side, dim]"""
        b, side, _, dim = x.shape
        y = self.norm1(x)
        if self.window:
            k, n = self.window, side // self.window
            y = y.view(b, n, k, n, k, dim).permute(0, 1, 3, 2, 4, 5).reshape(b * n * n, k * k, dim)
            y = self.attn(y, getattr(self.attn, "keys%d" % k))
            y = y.view(b, n, n, k, k, dim).permute(0, 1, 3, 2, 4, 5).reshape(b, side, side, dim)
        else:
            y = self.attn(y.view(b, side * side, dim), getattr(self.attn, "keys%d" % side)).view(b, side, side, dim)
        x = x + y
        return x + self.lin2(F.gelu(self.lin1(self.norm2(x))))


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of [batch, channels, h, w]"""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight.to(x.dtype) * y.to(x.dtype)


def rope_table(n, head_dim, theta):
    f = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    t = torch.arange(n).float()[:, None] * f
    t = torch.cat([t, t], 1)
    return t.cos(), t.sin()


def rope(x, cos, sin):
    """x [batch, n, heads, head_dim], halves turned against each other"""
    h = x.shape[-1] // 2
    return x * cos[:, None] + torch.cat([-x[..., h:], x[..., :h]], -1) * sin[:, None]


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class EncoderLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        dim = c["dim"]
        self.heads, self.kv, self.head_dim = c["heads"], c["kv"], dim // c["heads"]
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj, self.v_proj = nn.Linear(dim, self.kv * self.head_dim), nn.Linear(dim, self.kv * self.head_dim)
        self.o_proj = nn.Linear(dim, dim, bias=False)
        self.mlp = MLP(dim, c["mlp"])
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x, cos, sin, mask):
        b, n, dim = x.shape
        y = self.input_layernorm(x)
        q = rope(self.q_proj(y).view(b, n, self.heads, self.head_dim), cos, sin)
        k = rope(self.k_proj(y).view(b, n, self.kv, self.head_dim), cos, sin)
        v = self.v_proj(y).view(b, n, self.kv, self.head_dim)
        spread = lambda t: t[:, :, :, None].expand(b, n, self.kv, self.heads // self.kv, self.head_dim).reshape(b, n, self.heads, self.head_dim)
        k, v = spread(k), spread(v)
        o = F.scaled_dot_product_attention(q.to(v.dtype).transpose(1, 2), k.to(v.dtype).transpose(1, 2), v.transpose(1, 2), attn_mask=mask)
        x = x + self.o_proj(o.transpose(1, 2).reshape(b, n, dim))
        return x + self.mlp(self.post_attention_layernorm(x))


class MoE(nn.Module):
    """Greedy top-k of a softmax, its weights as they are, and one shared expert."""

    def __init__(self, c):
        super().__init__()
        self.experts, self.width, self.dim, self.top_k = c["experts"], c["width"], c["dim"], c["top_k"]
        self.gate = nn.Parameter(torch.randn(self.experts, self.dim) * .02)
        self.gate_up_proj = nn.Parameter(torch.randn(self.experts, 2 * self.width, self.dim) * self.dim ** -.5)
        self.down_proj = nn.Parameter(torch.randn(self.experts, self.dim, self.width) * self.width ** -.5)
        self.shared_experts = MLP(self.dim, self.width * c["shared"])

    def forward(self, x):
        with torch.autocast(x.device.type, enabled=False):
            p = F.linear(x.float(), self.gate.float()).softmax(-1)
            chosen = torch.zeros_like(p).scatter(-1, p.topk(self.top_k, -1).indices, 1.0)
            weight = p * chosen
            balance = self.experts * (chosen.flatten(0, -2).mean(0) / self.top_k * p.flatten(0, -2).mean(0)).sum()
        h = F.linear(x, self.gate_up_proj.reshape(-1, self.dim)).view(*x.shape[:-1], self.experts, 2 * self.width)
        gate, up = h.chunk(2, -1)
        h = F.silu(gate) * up * weight.to(gate.dtype)[..., None]
        y = F.linear(h.flatten(-2), self.down_proj.permute(1, 0, 2).reshape(self.dim, -1))
        return y + self.shared_experts(x), balance


class DecoderLayer(nn.Module):
    def __init__(self, c, dense):
        super().__init__()
        dim = c["dim"]
        self.heads, self.head_dim, self.dense = c["heads"], dim // c["heads"], dense
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.mlp = MLP(dim, c["mlp"]) if dense else MoE(c)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(dim), RMSNorm(dim)

    def qkv(self, x, cos, sin):
        b, n, _ = x.shape
        y = self.input_layernorm(x)
        q, k, v = (p(y).view(b, n, self.heads, self.head_dim) for p in (self.q_proj, self.k_proj, self.v_proj))
        return tuple(t.to(v.dtype).transpose(1, 2) for t in (rope(q, cos, sin), rope(k, cos, sin), v))

    def after(self, x, o):
        b, n, dim = x.shape
        x = x + self.o_proj(o.transpose(1, 2).reshape(b, n, dim))
        y = self.post_attention_layernorm(x)
        if self.dense:
            return x + self.mlp(y), torch.zeros((), device=x.device)
        y, balance = self.mlp(y)
        return x + y, balance

    def forward(self, x, cos, sin):
        q, k, v = self.qkv(x, cos, sin)
        return self.after(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Mini(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        sam, enc, dec = config["sam"], config["enc"], config["dec"]
        dim = sam["dim"]
        self.patch = nn.Linear(256, dim)
        self.pos_embed = nn.Parameter(torch.randn(GRID, GRID, dim) * .02)
        self.sam = nn.ModuleList(SamLayer(dim, sam["heads"], 0 if i in sam["global_at"] else sam["window"]) for i in range(sam["layers"]))
        self.neck1 = nn.Conv2d(dim, sam["neck"], 1, bias=False)
        self.neck_norm1 = ChannelNorm(sam["neck"], eps=1e-6)
        self.neck2 = nn.Conv2d(sam["neck"], sam["neck"], 3, padding=1, bias=False)
        self.neck_norm2 = ChannelNorm(sam["neck"], eps=1e-6)
        self.down1 = nn.Conv2d(sam["neck"], sam["down"][0], 3, 2, 1, bias=False)
        self.down2 = nn.Conv2d(sam["down"][0], sam["down"][1], 3, 2, 1, bias=False)
        self.enc = nn.ModuleList(EncoderLayer(enc) for _ in range(enc["layers"]))
        self.enc_norm = RMSNorm(enc["dim"])
        self.query1024 = nn.Parameter(torch.randn(256, enc["dim"]) * .5)
        self.query768 = nn.Parameter(torch.randn(144, enc["dim"]) * .5)
        self.projector = nn.Linear(enc["dim"], dec["dim"])
        self.separator = nn.Parameter(torch.randn(dec["dim"]) * dec["dim"] ** -.5)
        self.embed = nn.Embedding(config["vocab"], dec["dim"])
        self.dec = nn.ModuleList(DecoderLayer(dec, i == 0) for i in range(dec["layers"]))
        self.norm = RMSNorm(dec["dim"])
        self.lm_head = nn.Linear(dec["dim"], config["vocab"], bias=False)
        # dropped at export
        self.patch_head = nn.Linear(dim, 4 * N_CLASSES)
        self.cell_head = nn.Sequential(nn.Linear(enc["dim"], config["cell_head"]), nn.GELU(), nn.Linear(config["cell_head"], 64 * N_CLASSES))
        self.place_early, self.place_late = nn.Linear(dec["dim"], 2 * PLACES), nn.Linear(dec["dim"], 2 * PLACES)
        self.register_tables(enc, dec)
        self.initialise()

    def register_tables(self, enc, dec):
        for name, (n, c) in {"enc": (512, enc), "dec": (4096, dec)}.items():
            cos, sin = rope_table(n, c["dim"] // c["heads"], c["theta"])
            self.register_buffer(name + "_cos", cos, persistent=False)
            self.register_buffer(name + "_sin", sin, persistent=False)
        for n in (144, 256):  # image tokens see each other, queries see the image and the queries before them
            mask = torch.ones(2 * n, 2 * n).tril()
            mask[:n, :n] = 1
            self.register_buffer("mask%d" % n, mask.bool()[None, None], persistent=False)
        small = F.interpolate(torch.eye(GRID)[None, None], size=(48, GRID), mode="bicubic", antialias=True)[0, 0]
        self.register_buffer("shrink", small, persistent=False)  # [48, 64]: the position table for 768 px

    @torch.no_grad()
    def initialise(self):
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Conv2d)):
                nn.init.normal_(m.weight, std=m.weight[0].numel() ** -.5)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
        for name, p in self.named_parameters():  # what is added to the residual starts small
            if name.endswith(("attn.proj.weight", "lin2.weight", "o_proj.weight", "down_proj.weight", "mlp.down_proj")):
                p.mul_(.35)
        nn.init.normal_(self.embed.weight, std=.5)
        nn.init.normal_(self.lm_head.weight, std=.02)
        self.aim_queries()

    @torch.no_grad()
    def aim_queries(self):
        """Query i starts out looking at image token i: the biases of q and k make a score sum_f cos(f (distance - n)), which is largest n
        positions back. The heads of the first kv head do so for n = 256, those of the last for n = 144."""
        c = self.config["enc"]
        hd = c["dim"] // c["heads"]
        n_freq, strength = min(8, hd // 4), 4.6
        f = c["theta"] ** (-torch.arange(0, hd, 2).float() / hd)[:n_freq]
        group = c["heads"] // c["kv"]
        for layer in list(self.enc)[:2]:
            for kv, back in ((0, 256.0), (c["kv"] - 1, 144.0)):
                layer.k_proj.bias[kv * hd:kv * hd + n_freq] = strength
                for h in range(kv * group, (kv + 1) * group):
                    layer.q_proj.bias[h * hd:h * hd + n_freq] = strength * (-back * f).cos()
                    layer.q_proj.bias[h * hd + hd // 2:h * hd + hd // 2 + n_freq] = strength * (-back * f).sin()

    def positions(self, side):
        p = self.pos_embed
        return p if side == GRID else torch.einsum("ih,hwd,jw->ijd", self.shrink, p, self.shrink)

    def compress(self, x):
        """[batch, side, side, dim] -> [batch, (side / 4)^2, channels]"""
        x = x.permute(0, 3, 1, 2)
        x = self.neck_norm2(self.neck2(self.neck_norm1(self.neck1(x))))
        return self.down2(self.down1(x)).flatten(2).transpose(1, 2)

    def view(self, picture):
        """picture [batch, side, side], -1..1 -> SAM's patches [batch, side / 16, side / 16, dim], query outputs [batch, n, dim]"""
        b, side, _ = picture.shape
        g = side // 16
        x = picture.view(b, g, 16, g, 16).transpose(2, 3).reshape(b, g, g, 256)
        x = self.patch(x)
        x = x + self.positions(g).to(x.dtype)
        for layer in self.sam:
            x = layer(x)
        y = self.compress(x)
        n = y.shape[1]
        query = self.query1024 if n == 256 else self.query768
        h = torch.cat([y, query.to(y.dtype).expand(b, -1, -1)], 1)
        cos, sin = self.enc_cos[:2 * n].to(h.dtype), self.enc_sin[:2 * n].to(h.dtype)
        for layer in self.enc:
            h = layer(h, cos, sin, getattr(self, "mask%d" % n))
        return x, self.enc_norm(h[:, n:])

    def page_tokens(self, whole, tiles=None):
        """Query outputs of the whole view [pages, n, dim] and of tiles [pages * tiles, 144, dim] -> [pages, m, dim] for the decoder."""
        pages = whole.shape[0]
        image = whole if tiles is None else torch.cat([tiles.reshape(pages, -1, tiles.shape[-1]), whole], 1)
        image = self.projector(image)
        return torch.cat([image, self.separator.to(image.dtype).expand(pages, 1, -1)], 1)

    def sequence(self, image, ids):
        e = self.embed(ids).to(image.dtype)
        return torch.cat([e[:, :1], image, e[:, 1:]], 1)

    def decode(self, image, ids):
        """ids [pages, 1 + text], the first BOS -> states from the separator on [pages, 1 + text, dim], those halfway, balance loss"""
        x = self.sequence(image, ids)
        n, start = x.shape[1], image.shape[1]
        cos, sin = self.dec_cos[:n].to(x.dtype), self.dec_sin[:n].to(x.dtype)
        balance, early = 0.0, None
        for i, layer in enumerate(self.dec):
            x, b = layer(x, cos, sin)
            balance = balance + b
            if i == len(self.dec) // 2 - 1:
                early = x[:, start:]
        return self.norm(x[:, start:]), early, balance


def exported_parameters(model):
    return sum(p.numel() for n, p in model.named_parameters() if not n.startswith(("patch_head", "cell_head", "place_")))


if __name__ == "__main__":
    for name, c in SIZES.items():
        m = Mini(c)
        print(name, exported_parameters(m), "exported,", sum(p.numel() for p in m.parameters()), "in training")
