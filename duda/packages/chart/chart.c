/* SPDX-License-Identifier: Apache-2.0 */
/* Draws charts as SVG. A pure function from numbers to text. */
#include <duda/chart.h>
#include <monkey/sized.h>

#include <errno.h>
#include <math.h>
#include <monkey/text.h>

enum { SIZE_MAX_PX = 10000, TICKS = 5, LABELS = 12 };

/* The plot area, and the range of values in it. */
struct frame {
    double left, top, right, bottom;
    double low, high, step;
    size_t n; /* number of values in the longest series */
};

static const char *const colors[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e",
                                     "#9467bd", "#8c564b", "#17becf", "#7f7f7f"};

static const char *series_color(size_t i)
{
    return colors[i % (sizeof colors / sizeof *colors)];
}

static bool is_drawable(const struct duda_chart *chart)
{
    if (chart->n_series > DUDA_CHART_SERIES_MAX || chart->width > SIZE_MAX_PX || chart->height > SIZE_MAX_PX)
        return false;
    for (size_t i = 0; i < chart->n_series; i++)
        if (chart->series[i].n > DUDA_CHART_POINTS_MAX)
            return false;
    return true;
}

/* Rounds to 1, 2 or 5 times a power of ten, so that about TICKS steps cover the range. */
static double nice_step(double range)
{
    double raw = range / (double)TICKS, power = pow(10, floor(log10(raw))), part = raw / power;
    return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

static void find_value_range(struct frame *f, const struct duda_chart *chart)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < chart->n_series; i++) {
        const struct duda_chart_series *series = &chart->series[i];
        f->n = series->n > f->n ? series->n : f->n;
        for (size_t k = 0; k < series->n; k++)
            if (isfinite(series->values[k])) {
                low = fmin(low, series->values[k]);
                high = fmax(high, series->values[k]);
            }
    }
    if (!isfinite(low))
        low = 0, high = 1;
    if (chart->kind == DUDA_CHART_BARS || (low > 0 && low < high / 2))
        low = fmin(low, 0), high = fmax(high, 0);
    if (!(high - low > fabs(high) * 1e-12 + 1e-300)) /* all values are equal */
        high = low + fmax(fabs(low), 1);
    if (!isfinite(high - low)) /* the difference exceeds the range of a double */
        low = -1e300, high = 1e300;
    f->step = nice_step(high - low);
    f->low = floor(low / f->step) * f->step;
    f->high = ceil(high / f->step) * f->step;
}

static double value_to_y(const struct frame *f, double value)
{
    return f->bottom - (value - f->low) / (f->high - f->low) * (f->bottom - f->top);
}

/* Returns the x coordinate of the k-th value; for a bar, of its center. */
static double index_to_x(const struct frame *f, const struct duda_chart *chart, size_t k)
{
    double width = f->right - f->left;
    if (chart->kind == DUDA_CHART_LINES && f->n > 1)
        return f->left + width * (double)k / (double)(f->n - 1);
    return f->left + width * ((double)k + 0.5) / (double)f->n;
}

/* Formats a number briefly, with a decimal point in every locale: printf would use that of the locale. */
static void add_number(struct mk_buf *out, double value)
{
    char buf[48];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&text, "%.6g", value);
    for (size_t i = 0; i < text.len; i++)
        mk_buf_add_char(out, buf[i] == ',' ? '.' : buf[i]);
}

/* Appends NAME="VALUE", preceded by a blank. A tenth of a pixel is precise enough. */
static void add_attribute(struct mk_buf *out, const char *name, double value)
{
    mk_buf_addf(out, " %s=\"", name);
    add_number(out, round(value * 10) / 10);
    mk_buf_add_char(out, '"');
}

static void add_text(struct mk_buf *out, double x, double y, const char *anchor, mk_str text)
{
    mk_buf_add(out, MK_STR("<text"));
    add_attribute(out, "x", x);
    add_attribute(out, "y", y);
    mk_buf_addf(out, " text-anchor=\"%s\">", anchor);
    mk_html_escape(out, text);
    mk_buf_add(out, MK_STR("</text>"));
}

static void add_grid(struct mk_buf *out, const struct frame *f)
{
    int n = (int)round((f->high - f->low) / f->step);
    for (int i = 0; i <= n; i++) {
        double value = f->low + i * f->step, y = value_to_y(f, value);
        char buf[48];
        struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
        add_number(&text, fabs(value) < f->step / 1e6 ? 0 : value);
        mk_buf_add(out, MK_STR("<line stroke=\"currentColor\" stroke-opacity=\".2\""));
        add_attribute(out, "x1", f->left);
        add_attribute(out, "x2", f->right);
        add_attribute(out, "y1", y);
        add_attribute(out, "y2", y);
        mk_buf_add(out, MK_STR("/>"));
        add_text(out, f->left - 6, y + 4, "end", mk_buf_str(&text));
    }
}

static void add_labels(struct mk_buf *out, const struct frame *f, const struct duda_chart *chart)
{
    size_t n = chart->n_labels < f->n ? chart->n_labels : f->n, each = n / LABELS + 1;
    for (size_t k = 0; k < n; k += each)
        add_text(out, index_to_x(f, chart, k), f->bottom + 16, "middle", chart->labels[k]);
}

static void add_legend(struct mk_buf *out, const struct frame *f, const struct duda_chart *chart)
{
    double x = f->left;
    for (size_t i = 0; i < chart->n_series; i++) {
        if (!chart->series[i].name.p)
            continue;
        mk_buf_addf(out, "<rect class=\"series%zu\" fill=\"%s\" width=\"10\" height=\"10\"", i,
                    series_color(i));
        add_attribute(out, "x", x);
        add_attribute(out, "y", f->bottom + 26);
        mk_buf_add(out, MK_STR("/>"));
        add_text(out, x + 14, f->bottom + 35, "start", chart->series[i].name);
        x += 30 + 7 * (double)chart->series[i].name.len;
    }
}

static void add_line(struct mk_buf *out, const struct frame *f, const struct duda_chart *chart, size_t i)
{
    const struct duda_chart_series *series = &chart->series[i];
    bool has_point = false;
    mk_buf_addf(out, "<path class=\"series%zu\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", i,
                series_color(i));
    for (size_t k = 0; k < series->n; k++) {
        if (isfinite(series->values[k])) {
            mk_buf_add_char(out, has_point ? 'L' : 'M');
            add_number(out, round(index_to_x(f, chart, k) * 10) / 10);
            mk_buf_add_char(out, ' ');
            add_number(out, round(value_to_y(f, series->values[k]) * 10) / 10);
        }
        has_point = isfinite(series->values[k]);
    }
    mk_buf_add(out, MK_STR("\"/>"));
}

static void add_bars(struct mk_buf *out, const struct frame *f, const struct duda_chart *chart, size_t i)
{
    const struct duda_chart_series *series = &chart->series[i];
    double slot_width = (f->right - f->left) / (double)f->n * 0.8,
           width = slot_width / (double)chart->n_series;
    for (size_t k = 0; k < series->n; k++) {
        if (!isfinite(series->values[k]))
            continue;
        double y = value_to_y(f, series->values[k]), zero = value_to_y(f, 0);
        mk_buf_addf(out, "<rect class=\"series%zu\" fill=\"%s\"", i, series_color(i));
        add_attribute(out, "x", index_to_x(f, chart, k) - slot_width / 2 + width * (double)i);
        add_attribute(out, "y", fmin(y, zero));
        add_attribute(out, "width", width);
        add_attribute(out, "height", fabs(zero - y));
        mk_buf_add(out, MK_STR("/>"));
    }
}

static void init_frame(struct frame *f, const struct duda_chart *chart, unsigned width, unsigned height)
{
    *f = (struct frame){2, 2, width - 2.0, height - 2.0, 0, 1, 1, 0};
    if (!chart->sparkline) {
        f->left = 64;
        f->right = fmax(width - 16.0, f->left + 1);
        f->top = chart->title.p ? 34 : 12;
        f->bottom = fmax(height - 44.0, f->top + 1);
    }
    find_value_range(f, chart);
}

int duda_chart_svg_sized(struct mk_buf *out, const struct duda_chart *chart, size_t chart_size)
{
    struct duda_chart full;
    chart = mk_sized_in(&full, sizeof full, chart, chart_size);
    struct frame f;
    unsigned width = chart->width ? chart->width : 640, height = chart->height ? chart->height : 320;
    if (!is_drawable(chart))
        return -EINVAL;
    init_frame(&f, chart, width, height);
    mk_buf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"duda-chart\" role=\"img\" width=\"%u\" "
                "height=\"%u\" viewBox=\"0 0 %u %u\" font-family=\"sans-serif\" font-size=\"12\" "
                "fill=\"currentColor\">",
                width, height, width, height);
    if (chart->title.p) {
        mk_buf_add(out, MK_STR("<title>"));
        mk_html_escape(out, chart->title);
        mk_buf_add(out, MK_STR("</title>"));
    }
    if (!chart->sparkline) {
        if (chart->title.p)
            add_text(out, width / 2.0, 20, "middle", chart->title);
        add_grid(out, &f);
        add_labels(out, &f, chart);
        add_legend(out, &f, chart);
    }
    for (size_t i = 0; i < chart->n_series; i++)
        (chart->kind == DUDA_CHART_BARS ? add_bars : add_line)(out, &f, chart, i);
    mk_buf_add(out, MK_STR("</svg>\n"));
    return 0;
}
