/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/logfile.h"

#include <signal.h>
#include <sys/resource.h>

#include "unit/folder.h"
#include "unit/test.h"

static struct folder folder;
static struct mk_logfile f;
static char path[PATH_MAX];

static int start(void **state)
{
    (void)state;
    folder_init(&folder);
    folder_path(&folder, "log", path);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mk_logfile_close(&f);
    folder_fini(&folder);
    return 0;
}

static void open_log(const char *where)
{
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(where), NULL), 0);
}

static bool add(const char *line)
{
    struct mk_buf *out = mk_logfile_room(&f, 100);
    assert_non_null(out);
    mk_buf_add(out, mk_str_from_c(line));
    return mk_logfile_added(&f);
}

static void check(const char *name, const char *expected)
{
    char room[PATH_MAX];
    struct mk_buf text = mk_buf_growing(1 << 20);
    assert_int_equal(mk_file_read_all(folder_path(&folder, name, room), &text), 0);
    assert_str(mk_buf_str(&text), expected);
    mk_buf_free(&text);
}

static void a_log_may_be_off(void **state)
{
    (void)state;
    static const char *const off[] = {"off", "OFF", ""};
    for (size_t i = 0; i < MK_LEN(off); i++) {
        open_log(off[i]);
        assert_int_equal(f.kind, MK_LOGFILE_OFF);
        assert_int_equal(f.fd, -1);
        assert_int_equal(mk_logfile_open_again(&f), -ENOENT);
        mk_logfile_flush(&f);
        mk_logfile_close(&f);
    }
}

static void lines_are_gathered_and_appended(void **state)
{
    (void)state;
    struct stat st;
    folder_add(&folder, "log", MK_STR("old\n"));
    open_log(path);
    assert_int_equal(f.kind, MK_LOGFILE_FILE);
    assert_true(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
    assert_true(add("one\n"));
    assert_true(add("two\n"));
    check("log", "old\n");
    mk_logfile_flush(&f);
    check("log", "old\none\ntwo\n");
    mk_logfile_flush(&f);
    add("three\n");
    mk_logfile_close(&f);
    check("log", "old\none\ntwo\nthree\n");
    open_log(folder_path(&folder, "new", path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777 & ~0640u, 0);
}

static void a_full_block_is_written(void **state)
{
    (void)state;
    struct stat st;
    char line[100];
    memset(line, 'x', sizeof line);
    line[sizeof line - 2] = '\n';
    line[sizeof line - 1] = '\0';
    open_log(path);
    for (int i = 0; i < 1000; i++) {
        add(line);
        assert_true(f.lines.len <= MK_LOGFILE_BLOCK);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_true((size_t)st.st_size > 1000 * 99 - MK_LOGFILE_BLOCK && st.st_size % 99 == 0);
    mk_logfile_flush(&f);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 1000 * 99);
    assert_int_equal(f.lost, 0);
}

static void a_file_is_made_only_where_nothing_is(void **state)
{
    (void)state;
    char link[PATH_MAX], target[PATH_MAX];
    struct stat st;
    open_log(path);
    assert_int_equal(mk_logfile_make(&f), -EEXIST);
    mk_logfile_close(&f);
    assert_int_equal(symlink(folder_path(&folder, "target", target), folder_path(&folder, "link", link)), 0);
    f = (struct mk_logfile){.where = mk_str_from_c(link), .kind = MK_LOGFILE_FILE, .fd = -1};
    assert_int_equal(mk_logfile_make(&f), -EEXIST);
    assert_int_equal(stat(target, &st), -1);
    assert_int_equal(unlink(link), 0);
    f.fd = mk_logfile_make(&f);
    assert_true(f.fd >= 0);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    mk_logfile_close(&f);
}

static void what_cannot_be_written_is_counted(void **state)
{
    (void)state;
    open_log("/dev/full");
    add("one\n");
    add("two\n");
    mk_logfile_flush(&f);
    assert_int_equal(f.lost, 2);
    assert_int_equal(f.lines.len, 0);
    add("three\n");
    mk_logfile_flush(&f);
    assert_int_equal(f.lost, 3);
}

static void limit_file_size(rlim_t size)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = size;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void a_line_is_whole_or_lost(void **state)
{
    (void)state;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    open_log(path);
    add("one\n");
    add("two and more\n");
    add("three\n");
    limit_file_size(8); /* "one\ntwo " */
    mk_logfile_flush(&f);
    assert_int_equal(f.lost, 2);
    check("log", "one\n");
    add("longer than that\n");
    mk_logfile_flush(&f);
    assert_int_equal(f.lost, 3);
    limit_file_size(RLIM_INFINITY);
    add("four\n");
    mk_logfile_flush(&f);
    signal(SIGXFSZ, handler);
    check("log", "one\nfour\n");
}

/* A pipe takes nothing back. */
static void the_rest_of_a_line_follows_its_beginning(void **state)
{
    (void)state;
    static char line[3 * 4096], room[sizeof line];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
    open_log(path);
    mk_buf_add(mk_logfile_room(&f, sizeof line), mk_str_of(line, sizeof line));
    mk_logfile_flush(&f);
    add("next\n");
    mk_logfile_flush(&f);
    assert_int_equal(f.lost, 1); /* the next one: the long one goes on */
    size_t got = 0;
    for (int i = 0; i < 3; i++) {
        ssize_t n = read(reader, room + got, sizeof room - got);
        assert_true(n > 0);
        got += (size_t)n;
        mk_logfile_flush(&f);
    }
    assert_int_equal(got, sizeof line);
    assert_memory_equal(room, line, sizeof line);
    add("last\n");
    mk_logfile_flush(&f);
    assert_int_equal(read(reader, room, sizeof room), 5);
    assert_int_equal(f.lost, 1);
    close(reader);
}

/* The stream belongs to other processes as well: its flags stay as they are. */
static void a_shared_stream_that_is_full_stops_nothing(void **state)
{
    (void)state;
    int ends[2], out = dup(STDOUT_FILENO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[0], F_SETPIPE_SZ, 4096), 4096);
    assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    open_log("stdout");
    for (int i = 0; i < 2000; i++)
        add("a line\n");
    mk_logfile_flush(&f);
    assert_int_equal(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK, 0);
    mk_logfile_close(&f);
    open_log("stdout");
    assert_int_equal(dup3(ends[1], f.fd, O_CLOEXEC),
                     f.fd); /* as if the kernel gave no descriptor of our own */
    assert_int_equal(mk_logfile_exchange(&f, ends[1]), 0);
    add("a line\n");
    mk_logfile_flush(&f);
    assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(f.lost, 1);
    char room[4096];
    ssize_t n = read(ends[0], room, sizeof room);
    assert_true(n > 0 && n % 7 == 0); /* whole lines */
    add("last\n");
    mk_logfile_flush(&f);
    assert_int_equal(read(ends[0], room, sizeof room), 5);
    close(ends[0]);
    close(ends[1]);
    close(out);
}

static void a_pipe_without_a_reader_stops_nothing(void **state)
{
    (void)state;
    char line[101];
    memset(line, 'x', sizeof line - 1);
    line[99] = '\n';
    line[100] = '\0';
    assert_int_equal(mkfifoat(folder.fd, "log", 0600), 0);
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(path), NULL), -ENXIO);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    open_log(path);
    for (int i = 0; i < 2000; i++)
        add(line);
    mk_logfile_flush(&f);
    assert_in_range(f.lost, 1, 1999);
    char room[1000];
    size_t got = 0;
    for (ssize_t n; (n = read(reader, room, sizeof room)) > 0;)
        got += (size_t)n;
    assert_true(got / 100 + f.lost >= 2000);
    close(reader);
}

static void after_a_rotation_there_is_a_new_file(void **state)
{
    (void)state;
    char moved[PATH_MAX];
    open_log(path);
    add("before\n");
    mk_logfile_flush(&f);
    assert_int_equal(rename(path, folder_path(&folder, "log.1", moved)), 0);
    int fd = mk_logfile_open_again(&f);
    assert_true(fd >= 0);
    assert_int_equal(dup2(fd, f.fd), f.fd);
    close(fd);
    add("behind\n");
    mk_logfile_flush(&f);
    check("log.1", "before\n");
    check("log", "behind\n");
}

static void standard_streams_are_written_to(void **state)
{
    (void)state;
    int ends[2], before = dup(STDOUT_FILENO);
    char room[16];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    open_log("stdout");
    dup2(before, STDOUT_FILENO);
    assert_int_equal(f.kind, MK_LOGFILE_STREAM);
    assert_true(f.fd > 2);
    add("line\n");
    mk_logfile_flush(&f);
    assert_int_equal(read(ends[0], room, sizeof room), 5);
    assert_memory_equal(room, "line\n", 5);
    close(before);
    close(ends[0]);
    close(ends[1]);
}

static void a_terminal_gets_every_line_at_once(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    char room[64];
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    open_log(ptsname(master));
    assert_true(f.at_once);
    assert_false(add("line\n")); /* nothing waits */
    ssize_t n = read(master, room, sizeof room);
    assert_true(n >= 5);
    assert_memory_equal(room, "line", 4);
    close(master);
}

static void places_where_no_log_can_be(void **state)
{
    (void)state;
    char room[PATH_MAX];
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(folder_path(&folder, "no/folder", room)), NULL),
                     -ENOENT);
    assert_int_equal(f.fd, -1);
    assert_int_equal(mk_logfile_open(&f, mk_str_from_c(folder.path), NULL), -EISDIR);
}

static void what_is_said_is_written_behind_what_waits(void **state)
{
    (void)state;
    open_log(path);
    add("waits\n");
    assert_true(mk_logfile_say(&f, MK_LOG_ERROR, MK_STR("said\n")));
    check("log", "waits\nsaid\n");
    assert_int_equal(f.lines.len, 0);
}

/* ---- Rotation ---- */

static void a_log_is_full_when_it_has_its_size(void **state)
{
    (void)state;
    open_log(path);
    assert_false(mk_logfile_is_full(&f));
    f.max_size = 8;
    assert_false(mk_logfile_is_full(&f));
    add("1234567\n");
    assert_false(mk_logfile_is_full(&f)); /* it waits to be written */
    mk_logfile_flush(&f);
    assert_true(mk_logfile_is_full(&f));
    f.max_size = 0;
    assert_false(mk_logfile_is_full(&f));
    mk_logfile_close(&f);
    open_log("/dev/null");
    f.max_size = 1;
    assert_false(mk_logfile_is_full(&f));
}

static bool has(const char *name)
{
    char room[PATH_MAX];
    return access(folder_path(&folder, name, room), F_OK) == 0;
}

/* Puts another file in its place, as the master does. */
static void next(void)
{
    assert_int_equal(mk_logfile_shift(&f), 0);
    assert_false(has("log"));
    int fd = mk_logfile_open_again(&f);
    assert_true(fd >= 0);
    assert_true(dup3(fd, f.fd, O_CLOEXEC) >= 0);
    close(fd);
}

static void files_move_on(void **state)
{
    (void)state;
    open_log(path);
    f.keep = 2;
    for (const char *const *line = (const char *const[]){"1\n", "2\n", "3\n", NULL}; *line; line++) {
        add(*line);
        mk_logfile_flush(&f);
        next();
    }
    check("log.1", "3\n");
    check("log.2", "2\n");
    assert_false(has("log.3"));
    folder_add(&folder, "log.4", MK_STR("old"));
    f.keep = 4;
    add("4\n");
    mk_logfile_flush(&f);
    next();
    check("log.1", "4\n");
    check("log.3", "2\n");
    check("log.4", "old"); /* there was a gap before it */
}

static void none_may_be_kept(void **state)
{
    (void)state;
    open_log(path);
    add("1\n");
    mk_logfile_flush(&f);
    next();
    assert_false(has("log.1"));
    check("log", "");
}

static void a_file_that_is_not_ours_stays(void **state)
{
    (void)state;
    char room[PATH_MAX];
    open_log(path);
    f.keep = 1;
    assert_int_equal(rename(path, folder_path(&folder, "moved", room)), 0);
    assert_int_equal(mk_logfile_shift(&f), -ENOENT);
    folder_add(&folder, "log", MK_STR("new"));
    assert_int_equal(mk_logfile_shift(&f), -ENOENT);
    check("log", "new");
    assert_false(has("log.1"));
}

static void what_is_in_the_way_stays(void **state)
{
    (void)state;
    open_log(path);
    f.keep = 1;
    folder_add_folder(&folder, "log.1");
    assert_int_equal(mk_logfile_shift(&f), -EISDIR);
    assert_true(has("log"));
}

static void words_are_no_files(void **state)
{
    (void)state;
    static const char *const words[] = {"stdout", "stderr", "syslog", "off", "Off", ""};
    for (size_t i = 0; i < MK_LEN(words); i++)
        assert_true(mk_logfile_is_word(mk_str_from_c(words[i])));
    assert_false(mk_logfile_is_word(MK_STR("/var/log/x")));
    assert_false(mk_logfile_is_word(MK_STR("log")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_log_may_be_off, start, stop),
        cmocka_unit_test_setup_teardown(lines_are_gathered_and_appended, start, stop),
        cmocka_unit_test_setup_teardown(a_full_block_is_written, start, stop),
        cmocka_unit_test_setup_teardown(a_file_is_made_only_where_nothing_is, start, stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_counted, start, stop),
        cmocka_unit_test_setup_teardown(a_line_is_whole_or_lost, start, stop),
        cmocka_unit_test_setup_teardown(the_rest_of_a_line_follows_its_beginning, start, stop),
        cmocka_unit_test_setup_teardown(a_shared_stream_that_is_full_stops_nothing, start, stop),
        cmocka_unit_test_setup_teardown(a_pipe_without_a_reader_stops_nothing, start, stop),
        cmocka_unit_test_setup_teardown(after_a_rotation_there_is_a_new_file, start, stop),
        cmocka_unit_test_setup_teardown(standard_streams_are_written_to, start, stop),
        cmocka_unit_test_setup_teardown(a_terminal_gets_every_line_at_once, start, stop),
        cmocka_unit_test_setup_teardown(places_where_no_log_can_be, start, stop),
        cmocka_unit_test_setup_teardown(what_is_said_is_written_behind_what_waits, start, stop),
        cmocka_unit_test_setup_teardown(a_log_is_full_when_it_has_its_size, start, stop),
        cmocka_unit_test_setup_teardown(files_move_on, start, stop),
        cmocka_unit_test_setup_teardown(none_may_be_kept, start, stop),
        cmocka_unit_test_setup_teardown(a_file_that_is_not_ours_stays, start, stop),
        cmocka_unit_test_setup_teardown(what_is_in_the_way_stays, start, stop),
        cmocka_unit_test_setup_teardown(words_are_no_files, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
