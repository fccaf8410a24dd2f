/* What the shortcut of DeepSeek-V4's indexer saves by context length: the estimate on paper (spec deepseek-v4 §6.3), and a
 * drawing of it beside what was measured. */
#ifndef FATHOM_BENCH_V4_PLOT_H
#define FATHOM_BENCH_V4_PLOT_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define V4_PLOT_LENGTHS 8
static const size_t v4_plot_lengths[V4_PLOT_LENGTHS] = {64, 128, 256, 512, 1024, 2048, 4096, 8192};

struct v4_plot { /* shares of V4-Flash's time, 0 to 1 */
    double decode[V4_PLOT_LENGTHS], prefill[V4_PLOT_LENGTHS];
};

enum { V4_LAST_SHORT = 2051 }; /* tokens up to which no query of V4-Flash has a choice */

/* Bytes that a step at context n need not read, as a share of all: index query and head weights, keys (FP4). */
static inline double v4_paper_decode(size_t n)
{
    double saved = 187.2e6 + 21 * 68 * (double)n / 4, keys = 3.62e6 + 584.0 * 21 * (double)n / 4;
    return n < V4_LAST_SHORT ? saved / (11.211e9 + keys + 21 * 68 * (double)n / 4) : 0;
}

/* Multiplications and additions that a prefill of n tokens need not do, as a share of all. */
static inline double v4_paper_prefill(size_t n)
{
    double saved = 0, all = 0;
    for (size_t p = 0; p < n; p++) {
        double entries = (double)((p + 1) / 4), window = p < 128 ? (double)p + 1 : 128;
        double index = 363.3e6 + 21 * 16576 * entries;
        double keys = 43 * window + 21 * fmin(entries, 512) + 20 * (double)((p + 1) / 128);
        saved += p < V4_LAST_SHORT ? index : 0;
        all += 25.48e9 + 131072 * keys + 21 * 16576 * entries;
    }
    return saved / all;
}

enum { V4_PLOT_X = 60, V4_PLOT_Y = 30, V4_PLOT_W = 560, V4_PLOT_H = 260 };

static inline double v4_plot_x(size_t i) { return V4_PLOT_X + (double)V4_PLOT_W * (double)i / (V4_PLOT_LENGTHS - 1); }

static inline double v4_plot_y(double share, double most)
{
    return V4_PLOT_Y + V4_PLOT_H * (1 - fmin(1, fmax(0, share / most)));
}

static inline void v4_plot_line(FILE *f, const double *share, double most, const char *style)
{
    fprintf(f, "<polyline fill=\"none\" stroke-width=\"2\" %s points=\"", style);
    for (size_t i = 0; i < V4_PLOT_LENGTHS; i++)
        fprintf(f, "%.1f,%.1f ", v4_plot_x(i), v4_plot_y(share[i], most));
    fprintf(f, "\"/>\n");
}

/* False: the file could not be written. */
static inline bool v4_plot_write(const struct v4_plot *plot, const char *path)
{
    static const char *const styles[] = {"stroke=\"#1f6fb4\"", "stroke=\"#1f6fb4\" stroke-dasharray=\"6 5\"",
                                         "stroke=\"#c8501e\"", "stroke=\"#c8501e\" stroke-dasharray=\"6 5\""};
    static const char *const names[] = {"a step, measured", "a step, on paper (bytes)", "prefill, measured",
                                        "prefill, on paper (operations)"};
    double paper[2][V4_PLOT_LENGTHS], most = 0.02;
    const double *lines[] = {plot->decode, paper[0], plot->prefill, paper[1]};
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    for (size_t i = 0; i < V4_PLOT_LENGTHS; i++) {
        paper[0][i] = v4_paper_decode(v4_plot_lengths[i]);
        paper[1][i] = v4_paper_prefill(v4_plot_lengths[i]);
        most = fmax(most, fmax(plot->decode[i], plot->prefill[i]));
    }
    most = ceil(most * 200) / 200;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"400\" viewBox=\"0 0 680 400\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"680\" height=\"400\" fill=\"white\"/>\n");
    for (int i = 0; i <= 4; i++)
        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"52\" y=\"%.1f\" "
                "text-anchor=\"end\">%.2f %%</text>\n",
                V4_PLOT_X, V4_PLOT_X + V4_PLOT_W, v4_plot_y(most * i / 4, most), v4_plot_y(most * i / 4, most),
                v4_plot_y(most * i / 4, most) + 4, 100 * most * i / 4);
    for (size_t i = 0; i < V4_PLOT_LENGTHS; i++)
        fprintf(f, "<text x=\"%.1f\" y=\"308\" text-anchor=\"middle\">%zu</text>\n", v4_plot_x(i), v4_plot_lengths[i]);
    fprintf(f, "<text x=\"340\" y=\"328\" text-anchor=\"middle\">tokens of context; share of V4-Flash's time that the "
               "indexer would take</text>\n");
    for (size_t i = 0; i < 4; i++) {
        v4_plot_line(f, lines[i], most, styles[i]);
        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\" stroke-width=\"2\" %s/><text x=\"%d\" y=\"%d\">%s"
                "</text>\n",
                i % 2 ? 340 : 60, i % 2 ? 370 : 90, i < 2 ? 350 : 375, i < 2 ? 350 : 375, styles[i], i % 2 ? 378 : 98,
                i < 2 ? 354 : 379, names[i]);
    }
    fprintf(f, "</svg>\n");
    return !fclose(f);
}

#endif
