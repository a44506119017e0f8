/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the file that a response sends, from which its ETag is derived. */
#include <sys/stat.h>

#include "unit/files/fixture.h"
#include "unit/fixtures.h"
#include "web/response.h"

static struct mk_arena arena;
static struct mk_response r;

static void setup_response(void)
{
    arena_setup(&arena);
    mk_response_init(&r, &arena);
    setup();
}

static void teardown_response(void)
{
    mk_response_body_fini(&r.content);
    teardown();
}

/* Returns the file ID of a response whose body is the whole file. */
static struct mk_file_id id_of(const char *path)
{
    struct mk_file_id id = {0};
    struct mk_open_file *f = acquire_file(path);
    mk_response_reset(&r);
    assert_true(mk_response_body_add_file(&r.content, &arena, f, 0, f->size));
    assert_true(mk_response_file_id(&r, &id));
    mk_response_body_fini(&r.content);
    mk_open_file_release(f);
    return id;
}

static void check_id(const char *path)
{
    char buffer[PATH_MAX];
    struct stat st;
    struct mk_file_id id = id_of(path);
    assert_int_equal(stat(folder_path(&folder, path, buffer), &st), 0);
    assert_int_equal(id.inode, st.st_ino);
    assert_int_equal(id.size, st.st_size);
    assert_int_equal(id.modified_ns, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec);
    assert_int_equal(id.changed_ns, st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec);
}

static bool same(struct mk_file_id a, struct mk_file_id b)
{
    return a.device == b.device && a.inode == b.inode && a.size == b.size && a.modified_ns == b.modified_ns &&
           a.changed_ns == b.changed_ns;
}

static void response_file_has_identity_cached_or_not(void **state)
{
    (void)state;
    check_id("small");
    check_id("large");
    check_id("dir/file");
    assert_false(same(id_of("small"), id_of("large")));
}

static void response_file_hard_links_have_same_identity(void **state)
{
    (void)state;
    char from[PATH_MAX], to[PATH_MAX];
    assert_int_equal(link(folder_path(&folder, "small", from), folder_path(&folder, "hard", to)), 0);
    assert_true(same(id_of("small"), id_of("hard")));
}

static void response_file_new_version_has_new_identity(void **state)
{
    (void)state;
    char from[PATH_MAX], to[PATH_MAX];
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    struct mk_file_id first = id_of("small");
    folder_add(&folder, "new", MK_STR("9876543210"));
    assert_int_equal(rename(folder_path(&folder, "new", from), folder_path(&folder, "small", to)), 0);
    now += RECHECK_MS;
    struct mk_file_id replaced = id_of("small");
    assert_int_not_equal(first.inode, replaced.inode);
    assert_int_equal(utimensat(folder.fd, "small", old, 0), 0);
    now += RECHECK_MS;
    struct mk_file_id touched = id_of("small");
    check_id("small");
    assert_int_equal(touched.inode, replaced.inode);
    assert_int_equal(touched.modified_ns, INT64_C(1000000000000000));
    assert_false(same(touched, replaced));
}

static void response_file_part_has_no_identity(void **state)
{
    (void)state;
    struct mk_file_id id;
    static const uint64_t parts[][2] = {{0, 9}, {1, 9}, {0, 0}};
    for (size_t i = 0; i < MK_LEN(parts); i++) {
        struct mk_open_file *f = acquire_file("small");
        mk_response_reset(&r);
        assert_true(mk_response_body_add_file(&r.content, &arena, f, parts[i][0], parts[i][1]));
        assert_true(mk_response_is_file(&r));
        assert_false(mk_response_file_id(&r, &id));
        mk_response_body_fini(&r.content);
        mk_open_file_release(f);
    }
}

static void response_file_bare_descriptor_has_no_identity(void **state)
{
    (void)state;
    struct mk_file_id id;
    int fd = openat(folder.fd, "small", O_RDONLY | O_CLOEXEC);
    assert_false(mk_response_file_id(&r, &id));
    assert_int_equal(mk_response_set_body_file(&r, fd, 0, 10), 0);
    assert_true(mk_response_is_file(&r));
    assert_false(mk_response_file_id(&r, &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(response_file_has_identity_cached_or_not, setup_response, teardown_response),
        fixture_test(response_file_hard_links_have_same_identity, setup_response, teardown_response),
        fixture_test(response_file_new_version_has_new_identity, setup_response, teardown_response),
        fixture_test(response_file_part_has_no_identity, setup_response, teardown_response),
        fixture_test(response_file_bare_descriptor_has_no_identity, setup_response, teardown_response),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
