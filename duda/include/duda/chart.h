/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of lines or bars, as SVG. In monkey-duda-small.so. */
#ifndef DUDA_CHART_H
#define DUDA_CHART_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a chart looks like. */
enum duda_chart_kind { DUDA_CHART_LINES, DUDA_CHART_BARS };

/** The largest number of rows of values, and of values in each. */
enum { DUDA_CHART_ROWS = 16, DUDA_CHART_POINTS = 100000 };

/** One row of values; NAN leaves a gap. */
struct duda_chart_row {
    mk_str name; /**< in the legend; absent: it has no entry there */
    const double *values;
    size_t n;
};

/** A chart; zero what is not wanted. */
struct duda_chart {
    enum duda_chart_kind kind;
    mk_str title;         /**< above it, and read aloud; absent: none */
    unsigned width;       /**< in pixels; 0 is 640 */
    unsigned height;      /**< 0 is 320 */
    const mk_str *labels; /**< of the values, below; NULL: none */
    size_t n_labels;
    const struct duda_chart_row *rows;
    size_t n_rows;
    bool bare; /**< no axes, no labels: for a chart within a line of text */
};

/**
 * Writes it as one `<svg>` element, which works alone or within HTML; texts are escaped. Colours follow the
 * page: text takes `currentColor`, and a style sheet may set `.duda-chart .row0` and so on. 0, or -EINVAL:
 * too many rows or values, or a size above 10,000 pixels. From any thread.
 *
 *     double days[] = {3, 4.5, 2};
 *     struct duda_chart_row row = {MK_STR("visits"), days, 3};
 *     struct duda_chart chart = {.title = MK_STR("Visits"), .rows = &row, .n_rows = 1};
 *     if (duda_chart_svg(&out, &chart) == 0) ...
 */
MK_API int duda_chart_svg(struct mk_buf *out, const struct duda_chart *chart) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
