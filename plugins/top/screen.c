/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The alternate screen without a cursor and automatic line breaks, and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

enum { SIZE_MAX_CELLS = 1000, PAGE = 256 * 1024, ESCAPE = '\033' };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int crashing[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static struct {
    bool is_open, has_keys, has_colors;
    struct termios before;
    sigset_t wait_mask; /* of signals while waiting for keys: none of ours is blocked */
    char keys[64];
    size_t n_keys, next_key;
} screen;
static volatile sig_atomic_t end_signal, is_resized, is_stopped;

/* ---- Output ---- */

static bool write_all(const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(STDOUT_FILENO, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* Async-signal-safe. */
static void restore_terminal(void)
{
    (void)write_all(LEAVE, sizeof LEAVE - 1);
    if (screen.has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
}

static bool change_terminal(void)
{
    struct termios raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (screen.has_keys && tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return false;
    return write_all(ENTER, sizeof ENTER - 1);
}

/* ---- Signals ---- */

static void on_end_signal(int number)
{
    end_signal = number;
}

static void on_resize(int number)
{
    (void)number;
    is_resized = 1;
}

static void on_stop(int number)
{
    (void)number;
    is_stopped = 1;
}

static void on_crash(int number)
{
    restore_terminal();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* The signals are blocked, except while the program waits for a key. */
static void catch_signal(int number, void (*handler)(int), sigset_t *blocked)
{
    struct sigaction action = {.sa_handler = handler};
    struct sigaction before;
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN && number != SIGTSTP)
        return; /* such as SIGHUP under nohup */
    (void)sigaction(number, &action, NULL);
    (void)sigaddset(blocked, number);
}

static void catch_signals(void)
{
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    for (size_t i = 0; i < MK_LEN(ending); i++)
        catch_signal(ending[i], on_end_signal, &blocked);
    catch_signal(SIGWINCH, on_resize, &blocked);
    catch_signal(SIGTSTP, on_stop, &blocked);
    (void)sigprocmask(SIG_BLOCK, &blocked, &screen.wait_mask);
    for (size_t i = 0; i < MK_LEN(ending); i++)
        (void)sigdelset(&screen.wait_mask, ending[i]);
    (void)sigdelset(&screen.wait_mask, SIGWINCH);
    (void)sigdelset(&screen.wait_mask, SIGTSTP);
    for (size_t i = 0; i < MK_LEN(crashing); i++)
        (void)signal(crashing[i], on_crash);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* Ctrl-Z: the shell gets its terminal back, until it continues the program. */
static void stop_process(void)
{
    restore_terminal();
    is_stopped = 0;
    (void)raise(SIGSTOP);
    (void)change_terminal();
    is_resized = 1;
}

/* ---- Opening and closing ---- */

bool top_screen_is_possible(void)
{
    const char *type = getenv("TERM");
    return isatty(STDOUT_FILENO) && type && *type && strcmp(type, "dumb") != 0;
}

int top_screen_open(void)
{
    const char *no_color = getenv("NO_COLOR");
    screen.has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen.before) == 0;
    screen.has_colors = !no_color || !*no_color;
    catch_signals();
    if (!change_terminal()) {
        int e = errno;
        restore_terminal();
        return -e;
    }
    screen.is_open = true;
    return 0;
}

void top_screen_close(void)
{
    if (screen.is_open)
        restore_terminal();
    screen.is_open = false;
    if (!end_signal)
        return;
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, end_signal);
    (void)signal(end_signal, SIG_DFL);
    (void)raise(end_signal);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

void top_screen_size(unsigned *columns, unsigned *lines)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    *columns = known ? size.ws_col : 80;
    *lines = known ? size.ws_row : 24;
    *columns = *columns < SIZE_MAX_CELLS ? *columns : SIZE_MAX_CELLS;
    *lines = *lines < SIZE_MAX_CELLS ? *lines : SIZE_MAX_CELLS;
}

/* ---- Keys ---- */

/* Removes a control sequence that follows ESC, such as `[C` of an arrow key. Returns its meaning; 0: none. */
static char read_sequence(void)
{
    if (screen.next_key == screen.n_keys ||
        (screen.keys[screen.next_key] != '[' && screen.keys[screen.next_key] != 'O'))
        return 0;
    char last = 0;
    for (screen.next_key++; screen.next_key < screen.n_keys && !(last >= '@' && last <= '~');)
        last = screen.keys[screen.next_key++];
    return last == 'D' ? '<' : last == 'C' ? '>' : last == 'Z' ? '<' : 0;
}

static bool next_key(char *key)
{
    while (screen.next_key < screen.n_keys) {
        *key = screen.keys[screen.next_key++];
        if (*key == ESCAPE)
            *key = read_sequence();
        if (*key)
            return true;
    }
    return false;
}

static enum top_event read_keys(char *key)
{
    ssize_t n = read(STDIN_FILENO, screen.keys, sizeof screen.keys);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return TOP_TIMEOUT;
    if (n <= 0)
        return TOP_QUIT;
    screen.n_keys = (size_t)n;
    screen.next_key = 0;
    return next_key(key) ? TOP_KEY : TOP_TIMEOUT;
}

enum top_event top_screen_wait(unsigned ms, char *key)
{
    struct pollfd fds[] = {{.fd = screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN},
                           {.fd = STDOUT_FILENO, .events = 0}};
    const struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    if (next_key(key))
        return TOP_KEY;
    int n = ppoll(fds, MK_LEN(fds), &timeout, &screen.wait_mask);
    if (end_signal || (n > 0 && fds[1].revents))
        return TOP_QUIT;
    if (is_stopped)
        stop_process();
    if (is_resized) {
        is_resized = 0;
        return TOP_RESIZED;
    }
    return n > 0 && fds[0].revents ? read_keys(key) : TOP_TIMEOUT;
}

/* ---- Pages ---- */

static void append_line(struct mk_buf *out, mk_str line, unsigned columns)
{
    bool reversed = line.len && line.p[0] == TOP_REVERSED;
    line = mk_str_first(mk_str_skip(line, reversed), columns);
    if (reversed && screen.has_colors)
        mk_buf_add(out, MK_STR("\033[7m"));
    mk_buf_add(out, line);
    if (reversed && screen.has_colors)
        mk_buf_add(out, MK_STR("\033[0m"));
}

bool top_screen_show(mk_str page)
{
    unsigned columns, lines;
    struct mk_buf out = mk_buf_growing(PAGE);
    top_screen_size(&columns, &lines);
    mk_buf_add(&out, MK_STR("\033[H"));
    unsigned n = 0;
    for (; n < lines && page.len; n++) {
        if (n)
            mk_buf_add(&out, MK_STR("\r\n"));
        mk_buf_add(&out, MK_STR("\033[K"));
        append_line(&out, mk_str_cut(&page, '\n'), columns);
    }
    if (n < lines) /* erasing at the end of a full line would erase its last character */
        mk_buf_add(&out, n ? MK_STR("\r\n\033[J") : MK_STR("\033[J"));
    bool ok = out.failed || write_all(out.p, out.len);
    mk_buf_free(&out);
    return ok;
}
