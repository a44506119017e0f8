/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/metric.h"
#include "wr/report.h"

void wr_csv_write_header(struct mk_buf *out)
{
    mk_buf_addf(out, "concurrency,shot");
    for (const struct wr_metric *f = wr_metric_all(); f->name; f++)
        mk_buf_addf(out, ",%s", f->name);
    mk_buf_addf(out, ",bottleneck,doubt\n");
}

/* Writes a row for each shot. An unknown value is an empty cell. */
void wr_csv_write_rows(const struct wr_step *step, struct mk_buf *out)
{
    for (size_t i = 0; i < step->n; i++) {
        if (step->concurrency)
            mk_buf_add_num(out, step->concurrency);
        mk_buf_addf(out, ",%zu", i + 1);
        for (const struct wr_metric *f = wr_metric_all(); f->name; f++) {
            double value = f->of(&step->shots[i]);
            mk_buf_add_char(out, ',');
            if (wr_is_known(value))
                mk_buf_addf(out, "%.*f", f->decimals, value);
        }
        mk_buf_addf(out, ",%s,", wr_bottleneck_to_text(step->shots[i].bottleneck));
        if (step->shots[i].reported.doubt) /* constant text without quotes, but perhaps with commas */
            mk_buf_addf(out, "\"%s\"", step->shots[i].reported.doubt);
        mk_buf_add_char(out, '\n');
    }
}
