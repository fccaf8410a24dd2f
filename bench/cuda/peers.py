"""attention_relpos and attention_prefix beside their peers in PyTorch, on one GPU in one run.

    python3 bench/cuda/peers.py LIBFATHOM_CUDA_SO [--flex] [--rounds N]

Kernels of a case take turns: in each round every one is replayed from its own CUDA graph of CALLS calls, timed with events,
and the median over the rounds is reported in microseconds a call, with the spread between the quartiles. The graph leaves
out the host's work for a launch, for us and for the peers alike. `one` is the median of single calls timed with events,
the host's work included, as bench figures of frameworks often are. Results are checked against float64 before timing.
Extra memory is PyTorch's peak for the peers, the device's free memory before and after for us."""
import argparse
import ctypes
import json
import math
import statistics

import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
CALLS = 20


class Tensor(ctypes.Structure):  # struct tensor of src/kernel/tensor.h
    _fields_ = [("dtype", ctypes.c_int), ("n_dims", ctypes.c_int), ("shape", ctypes.c_size_t * 4),
                ("stride", ctypes.c_size_t * 4), ("data", ctypes.c_void_p)]


class Shape(ctypes.Structure):  # struct relpos_shape of src/kernel/kernel.h
    _fields_ = [(n, ctypes.c_size_t) for n in ("n_views", "gh", "gw", "n_heads", "window")]


class Err(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]


def tensor(t):
    dims = 4 - t.dim()
    return Tensor({torch.float16: 1, torch.bfloat16: 2}[t.dtype], t.dim(), (ctypes.c_size_t * 4)(*t.shape, *[0] * dims),
                  (ctypes.c_size_t * 4)(*t.stride(), *[0] * dims), t.data_ptr())


class Fathom:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.err = Err()

    def relpos(self, y, qkv, pad, rel_h, rel_w, views, gh, gw, heads, window):
        args = [ctypes.byref(tensor(t)) if t is not None else None for t in (y, qkv, pad, rel_h, rel_w)]
        shape, f = Shape(views, gh, gw, heads, window), self.lib.cuda_attention_relpos

        def call():
            if f(*args, shape, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), ctypes.byref(self.err)):
                raise RuntimeError(self.err.message.decode())
        return call

    def prefix(self, y, q, k, v, heads, kv_heads, seqs, prefix):
        args = [ctypes.byref(tensor(t)) for t in (y, q, k, v)] + [ctypes.c_size_t(n) for n in (heads, kv_heads, seqs, prefix)]
        f = self.lib.cuda_attention_prefix

        def call():
            if f(*args, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), ctypes.byref(self.err)):
                raise RuntimeError(self.err.message.decode())
        return call


def events(f, n=1):
    a, b = torch.cuda.Event(True), torch.cuda.Event(True)
    a.record()
    for _ in range(n):
        f()
    b.record()
    torch.cuda.synchronize()
    return a.elapsed_time(b) * 1000 / n


def graph(f):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            f()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, stream=stream):
        for _ in range(CALLS):
            f()
    return g


def measure(name, candidates, rounds, info):
    graphs, out = {}, dict(info)
    for k, f in candidates.items():
        for _ in range(3):
            f()
        graphs[k] = graph(f)
    times = {k: [] for k in candidates}
    for r in range(rounds + 2):
        for k, g in graphs.items():
            t = events(g.replay) / CALLS
            if r >= 2:
                times[k].append(t)
    for k, f in candidates.items():
        single = sorted(events(f) for _ in range(rounds))
        q = statistics.quantiles(times[k], n=4)
        out[k] = {"us": round(q[1], 1), "spread": round(q[2] - q[0], 1), "one": round(single[len(single) // 2], 1)}
    if "flops" in info:
        out["tflops"] = round(info["flops"] / out["fathom"]["us"] / 1e6, 1)
    for k in ("flash_no_bias", "sdpa_unmasked"):
        if k in out:
            out["ratio"] = round(out["fathom"]["us"] / out[k]["us"], 3)
            out["ratio_one"] = round(out["fathom"]["one"] / out[k]["one"], 3)
    print(name, json.dumps(out), flush=True)


def extra_bytes(f):
    """Device memory that a call of ours takes: none may appear while it runs or stay behind."""
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    f()
    during = torch.cuda.mem_get_info()[0]
    torch.cuda.synchronize()
    return before - min(during, torch.cuda.mem_get_info()[0])


def extra_mib(f):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    f()
    torch.cuda.synchronize()
    return round((torch.cuda.max_memory_allocated() - before) / 2**20, 1)


def relpos_case(fathom, views, gh, gw, window, args, dtype=torch.bfloat16, heads=12, d=64):
    torch.manual_seed(views * 1000 + gh)
    n, c = views * gh * gw, heads * d
    kh, kw = (window, window) if window else (gh, gw)
    qkv = torch.randn(n, 3 * c, device="cuda", dtype=dtype)
    pad = torch.randn(3 * c, device="cuda", dtype=dtype)
    rel_h, rel_w = (torch.randn(2 * s - 1, d, device="cuda", dtype=dtype) * .2 for s in (kh, kw))
    y = torch.full((n, c), float("nan"), device="cuda", dtype=dtype)
    ours = fathom.relpos(y, qkv, pad, rel_h, rel_w, views, gh, gw, heads, window)

    # The peers get what they want: padded windows already cut out, q, k, v contiguous.
    m = qkv.view(views, gh, gw, 3 * c)
    if window:
        hy, hx = -gh % kh, -gw % kw
        padded = pad.expand(views, gh + hy, gw + hx, 3 * c).clone()
        padded[:, :gh, :gw] = m
        ny, nx = (gh + hy) // kh, (gw + hx) // kw
        m = padded.view(views, ny, kh, nx, kw, 3 * c).permute(0, 1, 3, 2, 4, 5).reshape(-1, kh, kw, 3 * c)
    b, N = m.shape[0], kh * kw
    q, k, v = (x.contiguous() for x in m.reshape(b, N, 3, heads, d).permute(2, 0, 3, 1, 4))
    ry = torch.arange(kh, device="cuda")[:, None] - torch.arange(kh, device="cuda") + kh - 1
    rx = torch.arange(kw, device="cuda")[:, None] - torch.arange(kw, device="cuda") + kw - 1
    table_h, table_w = rel_h[ry], rel_w[rx]

    def factors(q, table_h, table_w):
        r = q.view(b * heads, kh, kw, d)
        return (torch.einsum("bhwc,hkc->bhwk", r, table_h).reshape(b, heads, N, kh),
                torch.einsum("bhwc,wkc->bhwk", r, table_w).reshape(b, heads, N, kw))

    def dense():
        a, w = factors(q, table_h, table_w)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(a[..., :, None] + w[..., None, :]).reshape(b, heads, N, N))

    candidates = {"fathom": ours, "flash_no_bias": lambda: F.scaled_dot_product_attention(q, k, v), "sdpa_dense_bias": dense}
    if args.flex:
        from torch.nn.attention.flex_attention import flex_attention
        flex = torch.compile(flex_attention, fullgraph=True)

        def flexed():
            a, w = factors(q, table_h, table_w)
            return flex(q, k, v, score_mod=lambda s, i, h, qi, ki: s + a[i, h, qi, ki // kw] + w[i, h, qi, ki % kw])
        candidates["flex+factors"] = flexed
    ours()
    torch.cuda.synchronize()
    assert not torch.isnan(y).any()
    got = y.view(views, gh, gw, c)
    if window:
        full = torch.zeros(views, gh + hy, gw + hx, c, device="cuda", dtype=dtype)
        full[:, :gh, :gw] = got
        got = full.view(views, ny, kh, nx, kw, c).permute(0, 1, 3, 2, 4, 5).reshape(b, N, heads, d)
    got = got.reshape(b, N, heads, d).permute(0, 2, 1, 3)
    difference = norm = 0.0
    for i in range(min(b, 4)):
        a, w = torch.einsum("bhwc,hkc->bhwk", q[i].double().view(heads, kh, kw, d), table_h.double()), \
            torch.einsum("bhwc,wkc->bhwk", q[i].double().view(heads, kh, kw, d), table_w.double())
        for h in range(heads):
            s = q[i, h].double() @ k[i, h].double().T / math.sqrt(d)
            s += (a[h][..., :, None] + w[h][..., None, :]).reshape(N, N)
            ref, out = s.softmax(-1) @ v[i, h].double(), got[i, h].double()
            if window:  # outputs at padded positions do not exist
                inside = (torch.arange(kh, device="cuda")[:, None] + i // nx % ny * kh < gh) & \
                    (torch.arange(kw, device="cuda") + i % nx * kw < gw)
                ref, out = ref[inside.flatten()], out[inside.flatten()]
            difference += float((out - ref).square().sum())
            norm += float(ref.square().sum())
    info = {"rel_f64": float(f"{math.sqrt(difference / norm):.2e}"), "extra_bytes": extra_bytes(ours),
            "dense_extra_mib": extra_mib(dense), "flops": 4 * b * heads * N * N * d}
    measure(f"RELPOS {views}x{gh}x{gw} window {window} {str(dtype)[6:]}", candidates, args.rounds, info)


def prefix_case(fathom, seqs, n, args, dtype=torch.bfloat16, heads=14, kv_heads=2, d=64):
    torch.manual_seed(seqs * 1000 + n)
    prefix = n // 2
    qkv = torch.randn(seqs * n, (heads + 2 * kv_heads) * d, device="cuda", dtype=dtype)
    qs, ks, vs = qkv.split([heads * d, kv_heads * d, kv_heads * d], 1)
    y = torch.full((seqs * n, heads * d), float("nan"), device="cuda", dtype=dtype)
    ours = fathom.prefix(y, qs, ks, vs, heads, kv_heads, seqs, prefix)
    q = qs.reshape(seqs, n, heads, d).transpose(1, 2).contiguous()
    k, v = (x.reshape(seqs, n, kv_heads, d).transpose(1, 2).repeat_interleave(heads // kv_heads, 1).contiguous() for x in (ks, vs))
    i = torch.arange(n, device="cuda")
    allow = (i < prefix)[None, :] | (i[None, :] <= i[:, None])
    mask = torch.zeros(n, n, device="cuda", dtype=dtype).masked_fill(~allow, torch.finfo(dtype).min)[None, None].expand(seqs, -1, -1, -1)
    ours()
    torch.cuda.synchronize()
    s = (q.double() @ k.double().transpose(-1, -2) / math.sqrt(d)).masked_fill(~allow, -math.inf)
    ref = (s.softmax(-1) @ v.double()).transpose(1, 2).reshape(seqs * n, heads * d)
    info = {"rel_f64": float(f"{float((y.double() - ref).norm() / ref.norm()):.2e}"), "extra_bytes": extra_bytes(ours)}
    measure(f"PREFIX {seqs}x{n} {str(dtype)[6:]}",
            {"fathom": ours, "sdpa_unmasked": lambda: F.scaled_dot_product_attention(q, k, v),
             "sdpa_cached_mask": lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)}, args.rounds, info)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shared_object")
    parser.add_argument("--flex", action="store_true")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    if args.rounds < 2:
        parser.error("--rounds must be at least 2")
    fathom = Fathom(args.shared_object)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, flush=True)
    for case in ((1, 64, 64, 0), (8, 64, 64, 0), (1, 48, 48, 0), (6, 48, 48, 0), (1, 40, 40, 0), (1, 64, 64, 14), (8, 64, 64, 14),
                 (25, 14, 14, 14), (200, 14, 14, 14)):
        relpos_case(fathom, *case, args)
    relpos_case(fathom, 1, 64, 64, 0, args, torch.float16)
    for seqs in (1, 8):
        for n in (288, 512):
            prefix_case(fathom, seqs, n, args)


if __name__ == "__main__":
    main()
