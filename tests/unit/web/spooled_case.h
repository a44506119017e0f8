/* SPDX-License-Identifier: Apache-2.0 */
/* A site that spools bodies in memory and in files, with several clients. */
#ifndef MK_UNIT_WEB_SPOOLED_CASE_H
#define MK_UNIT_WEB_SPOOLED_CASE_H

#include "event/offload.h"
#include "unit/fixtures.h"
#include "unit/site.h"
#include "unit/test.h"
#include "web/spool_quota.h"

static struct site site;
static struct mk_addr others[4];
static struct mk_loop loop;
static struct mk_offload helper;

/* Asserts that the spools are empty at the end of the test case. */
static inline void spooled_end(void *p)
{
    const struct mk_spool_quota *spools = p;
    assert_int_equal(spools->stored, 0);
    assert_int_equal(spools->responses, 0);
    for (size_t i = 0; i < MK_SPOOL_BUCKETS; i++)
        assert_null(spools->clients[i]);
}

static inline void setup_spool(void)
{
    site_setup(&site);
    site.web.spools = (struct mk_spool_quota){.folder = site.folder.path, .max = UINT64_MAX};
    harness_defer(spooled_end, &site.web.spools);
    for (size_t i = 0; i < MK_LEN(others); i++)
        others[i] = (struct mk_addr){.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = (uint8_t)(i + 1)}};
}

static inline void spooled_end_thread(void *p)
{
    mk_offload_fini(p);
}

/* Like setup_spool(), with a thread that writes the files. */
static inline void setup_spool_with_thread(void)
{
    setup_spool();
    loop_setup(&loop);
    assert_int_equal(mk_offload_init(&helper, &loop), 0);
    harness_defer(spooled_end_thread, &helper);
    site.web.spools.helper = &helper;
}

#endif
