/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service_folder.h"

#include "unit/folder.h"
#include "unit/test.h"

static struct folder files;

static int make_folder(void **state)
{
    (void)state;
    folder_init(&files);
    int file = openat(files.fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    return file < 0 || close(file) || mkdirat(files.fd, "sub", 0700) || symlinkat("sub", files.fd, "link");
}

static int remove_folder(void **state)
{
    (void)state;
    folder_fini(&files);
    return 0;
}

static bool is_folder(const char *name, unsigned char type)
{
    struct dirent entry = {.d_type = type};
    memcpy(entry.d_name, name, strlen(name) + 1);
    return duda_service_folder_is_folder(files.fd, &entry);
}

static void service_folder_entries_with_a_type_need_no_stat(void **state)
{
    (void)state;
    assert_true(is_folder("missing", DT_DIR));
    assert_false(is_folder("sub", DT_REG) || is_folder("sub", DT_LNK));
}

static void service_folder_entries_without_a_type_are_examined(void **state)
{
    (void)state;
    assert_true(is_folder("sub", DT_UNKNOWN));
    assert_false(is_folder("file", DT_UNKNOWN));
    assert_false(is_folder("link", DT_UNKNOWN));
    assert_false(is_folder("missing", DT_UNKNOWN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(service_folder_entries_with_a_type_need_no_stat),
        cmocka_unit_test(service_folder_entries_without_a_type_are_examined),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
