/* SPDX-License-Identifier: Apache-2.0 */
/* Line and bar charts as SVG. In monkey-duda-small.so. */
#ifndef DUDA_CHART_H
#define DUDA_CHART_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The type of a chart. */
enum duda_chart_kind { DUDA_CHART_LINES, DUDA_CHART_BARS };

/** Limits: number of data series, and of values in each series. */
enum { DUDA_CHART_SERIES_MAX = 16, DUDA_CHART_POINTS_MAX = 100000 };

/** A data series; NAN leaves a gap. */
struct duda_chart_series {
    mk_str name; /**< legend entry; absent: none */
    const double *values;
    size_t n;
    uint64_t reserved[2]; /**< must be zero */
};

/** A chart; leave unused members zero. */
struct duda_chart {
    enum duda_chart_kind kind;
    mk_str title;         /**< shown above the chart and read by screen readers; absent: none */
    unsigned width;       /**< in pixels; 0: 640 */
    unsigned height;      /**< in pixels; 0: 320 */
    const mk_str *labels; /**< labels of the values on the x axis; NULL: none */
    size_t n_labels;
    const struct duda_chart_series *series;
    size_t n_series;
    bool sparkline; /**< no axes or labels, for a sparkline within a line of text */
};

/**
 * Writes the chart as one `<svg>` element, for use in HTML or as a separate file; all strings are escaped.
 * Colors follow the page: text uses `currentColor`, and a style sheet may set `.duda-chart .series0` and so on.
 * Returns 0, or -EINVAL: too many series or values, or a width or height above 10,000 pixels. Thread-safe.
 *
 *     double days[] = {3, 4.5, 2};
 *     struct duda_chart_series series = {.name = MK_STR("visits"), .values = days, .n = 3};
 *     struct duda_chart chart = {.title = MK_STR("Visits"), .series = &series, .n_series = 1};
 *     if (duda_chart_svg(&out, &chart) == 0) ...
 */
MK_API int duda_chart_svg_sized(struct mk_buf *out, const struct duda_chart *chart,
                                size_t chart_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_chart_svg(struct mk_buf *out, const struct duda_chart *chart)
{
    return duda_chart_svg_sized(out, chart, sizeof *chart);
}

#ifdef __cplusplus
}
#endif

#endif
