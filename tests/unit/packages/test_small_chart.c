/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/chart.h>
#include <errno.h>
#include <math.h>

#include "unit/test.h"

static char buffer[65536];

static mk_str draw(const struct duda_chart *chart)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(duda_chart_svg(&out, chart), 0);
    assert_false(out.failed);
    mk_str svg = mk_buf_str(&out);
    assert_true(mk_str_starts(svg, MK_STR("<svg ")) && mk_str_ends(svg, MK_STR("</svg>\n")));
    assert_null(memmem(svg.p, svg.len, "nan", 3));
    assert_null(memmem(svg.p, svg.len, "inf", 3));
    return svg;
}

static void chart_draws_lines(void **state)
{
    const double values[] = {1, 5, NAN, 3, 4};
    const mk_str labels[] = {MK_STR("Mo"), MK_STR("<Tu>")};
    struct duda_chart_series series = {.name = MK_STR("R&D"), .values = values, .n = 5};
    struct duda_chart chart = {
        .title = MK_STR("a < b"), .series = &series, .n_series = 1, .labels = labels, .n_labels = 2};
    (void)state;
    mk_str svg = draw(&chart);
    assert_contains(svg, "<title>a &lt; b</title>");
    assert_contains(svg, "&lt;Tu&gt;");
    assert_contains(svg, "R&amp;D");
    assert_contains(svg, "d=\"M64 ");
    assert_contains(svg, "M"); /* the chart interrupts the line at the gap */
    chart.sparkline = true;
    svg = draw(&chart);
    assert_null(memmem(svg.p, svg.len, "<text", 5));
}

static void chart_survives_extreme_values(void **state)
{
    const double all[][3] = {{0, 0, 0},          {-1, -2, -3},        {1e300, -1e300, 0},
                             {INFINITY, NAN, 1}, {1e-300, 2e-300, 0}, {7, 7, 7}};
    (void)state;
    for (size_t i = 0; i < MK_LEN(all); i++)
        for (size_t n = 0; n <= 3; n++) {
            struct duda_chart_series series = {.name = MK_STR_NULL, .values = all[i], .n = n};
            struct duda_chart chart = {.series = &series, .n_series = 1};
            draw(&chart);
            chart.kind = DUDA_CHART_BARS;
            chart.width = chart.height = 1;
            draw(&chart);
        }
    draw(&(struct duda_chart){.width = 10});
}

static void chart_limits_are_enforced(void **state)
{
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    (void)state;
    assert_int_equal(duda_chart_svg(&out, &(struct duda_chart){.width = 10001}), -EINVAL);
    assert_int_equal(duda_chart_svg(&out, &(struct duda_chart){.n_series = DUDA_CHART_SERIES_MAX + 1}),
                     -EINVAL);
    struct duda_chart_series series = {.name = MK_STR_NULL, .values = NULL, .n = DUDA_CHART_POINTS_MAX + 1};
    assert_int_equal(duda_chart_svg(&out, &(struct duda_chart){.series = &series, .n_series = 1}), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chart_draws_lines),
        cmocka_unit_test(chart_survives_extreme_values),
        cmocka_unit_test(chart_limits_are_enforced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
