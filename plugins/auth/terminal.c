/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* The signals that could end or stop the program while the terminal's echo is off. They are blocked, and
 * observed through a descriptor, until echo is on again; then they take effect. */
static void fill_blocked_signals(sigset_t *set)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGALRM};
    sigemptyset(set);
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaddset(set, signals[i]);
}

bool auth_stdin_is_terminal(void)
{
    return isatty(STDIN_FILENO);
}

/* Returns -EINTR if a signal is pending. */
static int wait_readable_or_signal(int fd, int signals)
{
    struct pollfd both[] = {{.fd = signals, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (poll(both, 2, -1) < 0)
        if (errno != EINTR)
            return -errno;
    return both[0].revents ? -EINTR : 0;
}

/* Reads to the end of the line, and discards the bytes that do not fit. */
static int read_line(int fd, int signals, char buf[AUTH_LINE_BUF_SIZE], mk_str *line)
{
    size_t len = 0;
    bool too_long = false;
    for (;;) {
        char c;
        int e = signals >= 0 ? wait_readable_or_signal(fd, signals) : 0;
        if (e)
            return e;
        ssize_t n = read(fd, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0 && len == 0)
            return -ENODATA;
        if (n == 0 || c == '\n')
            break;
        too_long |= len == AUTH_LINE_BUF_SIZE - 1;
        if (!too_long)
            buf[len++] = c;
    }
    buf[len] = '\0';
    *line = mk_str_of(buf, len);
    return too_long || len > AUTH_PASSWORD_MAX ? -E2BIG : 0;
}

int auth_stdin_read_line(char buf[AUTH_LINE_BUF_SIZE], mk_str *line)
{
    return read_line(STDIN_FILENO, -1, buf, line);
}

static void write_text(int fd, const char *text)
{
    (void)!write(fd, text, strlen(text));
}

/* Prompts once while signals are blocked. */
static int prompt_without_echo(int tty, int signals, const char *prompt, char buf[AUTH_LINE_BUF_SIZE],
                               mk_str *line)
{
    struct termios before, hidden;
    if (tcgetattr(tty, &before) != 0)
        return -errno;
    hidden = before;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    hidden.c_lflag |= ICANON | ISIG;
    if (tcsetattr(tty, TCSAFLUSH, &hidden) != 0)
        return -errno;
    write_text(tty, prompt);
    int e = read_line(tty, signals, buf, line);
    (void)tcsetattr(tty, TCSAFLUSH, &before);
    write_text(tty, "\n");
    return e;
}

static int prompt_with_signals_blocked(int tty, const char *prompt, char buf[AUTH_LINE_BUF_SIZE],
                                       mk_str *line)
{
    sigset_t held, before;
    int e;
    fill_blocked_signals(&held);
    do {
        if (sigprocmask(SIG_BLOCK, &held, &before) != 0)
            return -errno;
        int signals = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
        e = signals < 0 ? -errno : prompt_without_echo(tty, signals, prompt, buf, line);
        if (signals >= 0)
            close(signals);
        (void)sigprocmask(SIG_SETMASK, &before, NULL); /* a blocked signal takes effect here */
    } while (e == -EINTR);
    return e;
}

int auth_terminal_read_password(const char *prompt, char buf[AUTH_LINE_BUF_SIZE], mk_str *line)
{
    int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int e = prompt_with_signals_blocked(tty >= 0 ? tty : STDIN_FILENO, prompt, buf, line);
    if (tty >= 0)
        close(tty);
    return e;
}
