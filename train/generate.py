"""Greedy reading with the training model: a batch of pages of one shape, keys and values kept, the step as a CUDA graph."""
import torch
import torch.nn.functional as F


@torch.no_grad()
def generate(model, image, prompt, eos, most):
    """image [pages, m, dim] from Mini.page_tokens; the same prompt for all pages. -> lists of ids without EOS"""
    device, dtype = image.device, image.dtype
    pages = image.shape[0]
    ids = torch.tensor([0] + prompt, device=device).expand(pages, -1)
    x = model.sequence(image, ids)
    n = x.shape[1]
    dec = model.config["dec"]
    head_dim = dec["dim"] // dec["heads"]
    keys = [torch.zeros(pages, dec["heads"], n + most, head_dim, device=device, dtype=dtype) for _ in model.dec]
    values = [torch.zeros_like(k) for k in keys]
    cos, sin = model.dec_cos.to(dtype), model.dec_sin.to(dtype)
    for i, layer in enumerate(model.dec):
        q, k, v = layer.qkv(x, cos[:n], sin[:n])
        keys[i][:, :, :n], values[i][:, :, :n] = k, v
        x, _ = layer.after(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
    first = model.lm_head(model.norm(x[:, -1:]))[:, 0].float().argmax(-1)
    current, done = first.clone(), first == eos
    position = torch.full((1,), n, dtype=torch.int64, device=device)
    out = torch.full((pages, most), eos, dtype=torch.int64, device=device)
    everywhere = torch.arange(n + most, device=device)

    def step():
        h = model.embed(current)[:, None].to(dtype)
        c, s = cos.index_select(0, position), sin.index_select(0, position)
        later = (everywhere > position)[None, None, None]
        for i, layer in enumerate(model.dec):
            q, k, v = layer.qkv(h, c, s)
            keys[i].index_copy_(2, position, k)
            values[i].index_copy_(2, position, v)
            w = (q @ keys[i].transpose(-1, -2)).float() * head_dim ** -.5
            h, _ = layer.after(h, w.masked_fill(later, float("-inf")).softmax(-1).to(dtype) @ values[i])
        following = model.lm_head(model.norm(h))[:, 0].float().argmax(-1)
        following = torch.where(done, torch.full_like(following, eos), following)
        current.copy_(following)
        done.logical_or_(following == eos)
        position.add_(1)
        out.index_copy_(1, position - n, following[:, None])

    def reset():
        current.copy_(first)
        done.copy_(first == eos)
        position.fill_(n)
        out.fill_(eos)
        out[:, 0] = first

    run = step
    if device.type == "cuda":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
            step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
        run = graph.replay
    reset()
    for t in range(most - 1):
        run()
        if t % 32 == 31 and bool(done.all()):
            break
    rows = out.tolist()
    return [r[:r.index(eos)] if eos in r else r for r in rows]
