/* SPDX-License-Identifier: Apache-2.0 */
/* The recording of the plugin recorder, as `monkey recorder` reads and prints it. The magic and the sizes of the header are
 * made valid, so that most inputs reach the records; the first byte selects small sizes. */
#include <string.h>

#include "top/filter.h"
#include "top/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE = 16384 };

struct input {
    struct mk_recorder_header header;
    const uint8_t *records;
    size_t size;
};

static ssize_t read_input(void *ctx, void *buf, size_t size, uint64_t offset)
{
    const struct input *in = ctx;
    if (offset < MK_RECORDER_PAGE) {
        memcpy(buf, &in->header, sizeof in->header);
        return sizeof in->header;
    }
    offset -= MK_RECORDER_PAGE;
    if (offset >= in->size)
        return 0;
    size_t n = in->size - offset < size ? in->size - (size_t)offset : size;
    memcpy(buf, in->records + offset, n);
    return (ssize_t)n;
}

static bool print_entry(void *ctx, const struct top_entry *e)
{
    static const struct top_filter all = {.since_ms = 0};
    char buf[LINE];
    struct mk_buf line = mk_buf_fixed(buf, sizeof buf);
    (void)ctx;
    (void)top_filter_match(&all, e);
    top_print_line(e, &line);
    struct mk_buf json = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&json);
    top_print_json(e, &w);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct input in = {.header = {.version = MK_RECORDER_VERSION,
                                  .record_size = sizeof(struct mk_recorder_record),
                                  .n_slots = 1 + data[0] % 4,
                                  .n_requests = 16,
                                  .n_failures = 16},
                       .records = data + 1,
                       .size = size - 1};
    memcpy(in.header.magic, MK_RECORDER_MAGIC, sizeof in.header.magic);
    const struct top_source source = {.read = read_input, .ctx = &in};
    const struct top_visitor visitor = {.each = print_entry};
    struct top_damage damage = {0};
    struct mk_recorder_header h;
    if (!top_reader_header(&source, &h))
        top_reader_each(&source, &h, &visitor, &damage);
    return 0;
}
