/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <unistd.h>

#include "unit/test.h"

enum { FIRST = MK_RECORDER_PAGE + sizeof(struct mk_recorder_slot) };

/* A recording of one slot, whose first record a worker changes between reads. */
struct recording {
    struct mk_recorder_header header;
    struct mk_recorder_slot slot;
    struct mk_recorder_record record;
    void (*change)(struct recording *r);
    unsigned n_reads, n_entries;
    unsigned status;
};

static ssize_t read_recording(void *ctx, void *buf, size_t size, uint64_t offset)
{
    struct recording *r = ctx;
    memset(buf, 0, size);
    if (offset == 0) {
        memcpy(buf, &r->header, sizeof r->header);
    } else if (offset == MK_RECORDER_PAGE) {
        memcpy(buf, &r->slot, sizeof r->slot);
    } else if (offset == FIRST) {
        memcpy(buf, &r->record, sizeof r->record);
        r->n_reads++;
        if (r->change)
            r->change(r);
    }
    return (ssize_t)size;
}

static bool count_entry(void *ctx, const struct top_entry *entry)
{
    struct recording *r = ctx;
    r->n_entries++;
    r->status = entry->record.status;
    return true;
}

static struct recording new_recording(void)
{
    struct recording r = {.header = {.magic = MK_RECORDER_MAGIC,
                                     .version = MK_RECORDER_VERSION,
                                     .record_size = sizeof(struct mk_recorder_record),
                                     .n_slots = 1,
                                     .n_requests = MK_RECORDER_RECORDS_MIN,
                                     .n_failures = MK_RECORDER_RECORDS_MIN},
                          .record = {.version = 2, .state = MK_RECORDER_ENDED, .status = 200, .check = 2}};
    return r;
}

static struct top_damage read_all(struct recording *r)
{
    const struct top_source source = {.read = read_recording, .ctx = r};
    struct mk_recorder_header h;
    const struct top_visitor visitor = {.each = count_entry, .ctx = r};
    struct top_damage damage = {0};
    assert_null(top_reader_header(&source, &h));
    top_reader_each(&source, &h, &visitor, &damage);
    return damage;
}

static void reader_unchanged_record_is_read(void **state)
{
    (void)state;
    struct recording r = new_recording();
    assert_int_equal(read_all(&r).torn, 0);
    assert_int_equal(r.n_entries, 1);
    assert_int_equal(r.status, 200);
}

static void complete_record(struct recording *r)
{
    r->record.status = 404;
}

/* The first copy has the new version, but old members. */
static void reader_mixed_record_is_read_again(void **state)
{
    (void)state;
    struct recording r = new_recording();
    r.change = complete_record;
    assert_int_equal(read_all(&r).torn, 0);
    assert_int_equal(r.n_entries, 1);
    assert_int_equal(r.status, 404);
}

static void change_record(struct recording *r)
{
    r->record.status++;
}

static void reader_record_that_always_changes_is_skipped(void **state)
{
    (void)state;
    struct recording r = new_recording();
    r.change = change_record;
    assert_int_equal(read_all(&r).torn, 1);
    assert_int_equal(r.n_entries, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_unchanged_record_is_read),
        cmocka_unit_test(reader_mixed_record_is_read_again),
        cmocka_unit_test(reader_record_that_always_changes_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
