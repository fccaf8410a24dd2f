#include "document/tags.h"

#include <string.h>

static const char ref[] = "<|ref|>", middle[] = "<|/ref|><|det|>", det_end[] = "<|/det|>";

/* what starts with '<'. */
static const char *find(const char *text, const char *end, const char *what)
{
    size_t n = strlen(what);
    while ((size_t)(end - text) >= n && (text = memchr(text, '<', (size_t)(end - text) - n + 1))) {
        if (memcmp(text, what, n) == 0)
            return text;
        text++;
    }
    return NULL;
}

bool tag_next(const char *text, const char *end, struct tag *tag)
{
    /* If an item is not completed from here, none that starts later is either: no need to try again. */
    const char *start = find(text, end, ref), *between, *last;
    if (!start || !(between = find(start + strlen(ref), end, middle)) ||
        !(last = find(between + strlen(middle), end, det_end)))
        return false;
    tag->start = start;
    tag->label = start + strlen(ref);
    tag->n_label = (size_t)(between - tag->label);
    tag->list = between + strlen(middle);
    tag->n_list = (size_t)(last - tag->list);
    tag->end = last + strlen(det_end);
    return true;
}

static bool is_beginning(const char *text, const char *end, const char *what)
{
    size_t n = (size_t)(end - text);
    return n <= strlen(what) && memcmp(text, what, n) == 0;
}

const char *tag_cut(const char *text, const char *end)
{
    const char *start = NULL;
    for (const char *p = text; (p = find(p, end, ref)); p++)
        start = p;
    if (!start)
        return end;
    const char *p = start + strlen(ref);
    while (p < end && *p != '\n' && !(*p == '<' && end - p > 1 && p[1] == '|'))
        p++;
    if (is_beginning(p, end, middle))
        return start;
    if ((size_t)(end - p) < strlen(middle) || memcmp(p, middle, strlen(middle)) != 0)
        return end;
    p += strlen(middle);
    while (p < end && strchr("0123456789.,+-eE[] \t\r\n", *p))
        p++;
    return is_beginning(p, end, det_end) ? start : end;
}

static double scale(double value, int exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    for (; exponent > 22 && value != 0 && value < 1e300; exponent -= 22)
        value *= 1e22;
    for (; exponent < -22 && value != 0; exponent += 22)
        value /= 1e22;
    if (exponent > 22)
        return value != 0 ? 1e300 : 0; /* far outside any page */
    return exponent < -22 ? 0 : exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
}

static bool is_digit(const char *p, const char *end) { return p < end && *p >= '0' && *p <= '9'; }

/* Exact for what a double holds exactly with at most 19 digits; beyond, more digits only move the exponent. NULL when
 * there is no number. */
static const char *read_number(const char *p, const char *end, double *out)
{
    uint64_t digits = 0;
    int exponent = 0, written = 0;
    bool negative = p < end && *p == '-', any = false, minus = false;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; is_digit(p, end); p++, any = true) {
        if (digits < UINT64_C(1000000000000000000))
            digits = digits * 10 + (uint64_t)(*p - '0');
        else if (exponent < 10000)
            exponent++;
    }
    if (p < end && *p == '.')
        for (p++; is_digit(p, end); p++, any = true)
            if (digits < UINT64_C(1000000000000000000) && exponent > -10000) {
                digits = digits * 10 + (uint64_t)(*p - '0');
                exponent--;
            }
    if (!any)
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            minus = *p++ == '-';
        if (!is_digit(p, end))
            return NULL;
        for (; is_digit(p, end); p++)
            written = written < 100000 ? written * 10 + (*p - '0') : written;
    }
    double value = scale((double)digits, exponent + (minus ? -written : written));
    *out = negative ? -value : value;
    return p;
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* A list holds either numbers or lists, so no stack is needed: once an inner list ends, the outer one holds lists. */
size_t tag_boxes(const char *text, size_t n, box_fn *add, void *user)
{
    const char *p = skip_space(text, text + n), *end = text + n;
    size_t depth = 0, n_numbers = 0, n_boxes = 0;
    bool has_lists = false, after_item = false; /* an item must be followed by a comma or the end of its list */
    double c[4];
    while (p < end) {
        if (*p == ']' && depth > 0) {
            if (n_numbers == 4 && add)
                add(user, c);
            if (n_numbers != 0 && n_numbers != 4)
                return 0;
            n_boxes += n_numbers == 4;
            p = skip_space(p + 1, end);
            if (--depth == 0)
                return p == end ? n_boxes : 0;
            n_numbers = 0;
            has_lists = after_item = true;
        } else if (*p == ',' && after_item) {
            after_item = false;
            p++;
        } else if (*p == '[' && !after_item && n_numbers == 0) {
            depth++;
            has_lists = false;
            p++;
        } else {
            if (depth == 0 || after_item || has_lists || n_numbers == 4 || !(p = read_number(p, end, &c[n_numbers])))
                return 0;
            n_numbers++;
            after_item = true;
        }
        p = skip_space(p, end);
    }
    return 0;
}
