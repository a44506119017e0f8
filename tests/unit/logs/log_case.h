/* SPDX-License-Identifier: Apache-2.0 */
/* For log tests: a folder, and the path of a file `log` in it. */
#ifndef MK_UNIT_LOGS_LOG_CASE_H
#define MK_UNIT_LOGS_LOG_CASE_H

#include "logs/logfile.h"
#include "unit/folder.h"
#include "unit/test.h"

static struct folder folder;
static struct mk_logfile f;
static char path[PATH_MAX];

static void setup(void)
{
    folder_setup(&folder);
    folder_path(&folder, "log", path);
}

static void check(const char *name, const char *expected)
{
    char buffer[PATH_MAX];
    struct mk_buf text = mk_buf_growing(1 << 20);
    assert_int_equal(mk_file_read_all(folder_path(&folder, name, buffer), &text), 0);
    assert_str(mk_buf_str(&text), expected);
    mk_buf_free(&text);
}

#endif
