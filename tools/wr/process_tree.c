/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/process_tree.h"

#include <limits.h>
#include <unistd.h>

#include "base/mem.h"
#include "wr/cgroup.h"

void wr_process_tree_init(struct wr_process_tree *f)
{
    *f = (struct wr_process_tree){0};
}

void wr_process_tree_fini(struct wr_process_tree *f)
{
    for (size_t i = 0; i < f->n; i++)
        wr_process_fini(&f->all[i]);
    mk_mem_free(f->all);
    mk_mem_free(f->cgroup);
    wr_process_tree_init(f);
}

struct wr_process *wr_process_tree_find(struct wr_process_tree *f, pid_t pid)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->all[i].pid == pid)
            return &f->all[i];
    return NULL;
}

static bool is_older_process(const struct wr_process *a, const struct wr_process *b)
{
    return a->start != b->start ? a->start < b->start : a->pid < b->pid;
}

bool wr_process_tree_add(struct wr_process_tree *f, pid_t pid)
{
    struct wr_process p;
    if (wr_process_tree_find(f, pid) || !wr_process_init(&p, pid))
        return true;
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 16;
        struct wr_process *more = mk_mem_realloc(f->all, cap * sizeof *more);
        if (!more)
            return false;
        f->all = more;
        f->cap = cap;
    }
    size_t at = f->n++;
    for (; at > 0 && is_older_process(&p, &f->all[at - 1]); at--)
        f->all[at] = f->all[at - 1];
    f->all[at] = p;
    return true;
}

static bool add_unless_own_pid(void *tree, pid_t pid)
{
    return pid == getpid() || wr_process_tree_add(tree, pid);
}

/* Parses the contents of a `children` file in /proc. */
static bool add_pid_list(struct wr_process_tree *f, mk_str list)
{
    for (mk_str word; (word = mk_str_word(&list)).len;) {
        uint64_t pid;
        if (mk_num_parse(word, &pid) && pid <= INT_MAX && !add_unless_own_pid(f, (pid_t)pid))
            return false;
    }
    return true;
}

static bool add_children(struct wr_process_tree *f, pid_t pid)
{
    struct mk_buf text = mk_buf_growing(WR_PROCFILE_MAX);
    DIR *folder = wr_procfile_folder("/proc/%d/task", (int)pid);
    bool good = true;
    pid_t tid;
    while (good && folder && wr_procfile_next_number(folder, &tid))
        good = wr_procfile_read(&text, "/proc/%d/task/%d/children", (int)pid, (int)tid) != -ENOMEM &&
               add_pid_list(f, mk_buf_str(&text));
    if (folder)
        (void)closedir(folder);
    mk_buf_free(&text);
    return good;
}

/* For kernels without `children` files: scans all processes until no new one is found. */
static bool add_descendants_by_ppid(struct wr_process_tree *f)
{
    for (size_t before = f->n + 1; before != f->n;) {
        before = f->n;
        DIR *folder = wr_procfile_folder("/proc");
        bool good = true;
        pid_t pid;
        while (good && folder && wr_procfile_next_number(folder, &pid)) {
            struct wr_stat s;
            if (wr_procfile_read_stat(pid, &s) && wr_process_tree_find(f, s.parent))
                good = add_unless_own_pid(f, pid);
        }
        if (folder)
            (void)closedir(folder);
        if (!good)
            return false;
    }
    return true;
}

static bool has_children_files(void)
{
    static int known;
    if (known == 0) {
        char buf[4096];
        struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
        known =
            wr_procfile_read(&text, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid()) == 0 ? 1 : -1;
    }
    return known > 0;
}

bool wr_process_tree_add_descendants(struct wr_process_tree *f)
{
    if (f->cgroup) { /* child cgroups may vanish in the meantime: unreadable ones are skipped */
        mk_err e = wr_cgroup_visit_processes(f->cgroup, add_unless_own_pid, f);
        return e != -ECANCELED && e != -ENOMEM;
    }
    if (!has_children_files())
        return add_descendants_by_ppid(f);
    /* The array is sorted by age, so a new process may be inserted before `i`: scan until none is found. */
    for (size_t before = f->n + 1; before != f->n;) {
        before = f->n;
        for (size_t i = 0; i < f->n; i++)
            if (!add_children(f, f->all[i].pid))
                return false;
    }
    return true;
}

void wr_process_tree_mark_roots(struct wr_process_tree *f)
{
    for (size_t i = 0; i < f->n; i++)
        f->all[i].is_root = !wr_process_tree_find(f, f->all[i].parent);
}

const struct wr_process *wr_process_tree_find_dead_root(const struct wr_process_tree *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->all[i].is_root && (f->all[i].is_gone || f->all[i].is_dead))
            return &f->all[i];
    return NULL;
}

struct member_count {
    struct wr_process_tree *tree;
    size_t n;
};

static bool count_and_check_in_tree(void *data, pid_t pid)
{
    struct member_count *a = data;
    a->n++;
    return wr_process_tree_find(a->tree, pid) != NULL;
}

/* Returns -ECANCELED if the cgroup contains other processes. */
static mk_err check_tree_owns_cgroup(struct wr_process_tree *f, const char *path)
{
    enum { TRIES = 3 }; /* processes may start and exit between the scans */
    mk_err e = -ECANCELED;
    for (int i = 0; e == -ECANCELED && i < TRIES; i++) {
        struct member_count a = {f, 0};
        struct wr_cpu cpu;
        wr_process_tree_read_process_cpu(f, &cpu); /* removes exited processes */
        if (!wr_process_tree_add_descendants(f))
            return -ENOMEM;
        e = wr_cgroup_visit_processes(path, count_and_check_in_tree, &a);
        if (!e && a.n != f->n)
            e = -ECANCELED;
    }
    return e;
}

bool wr_process_tree_use_own_cgroup(struct wr_process_tree *f)
{
    struct mk_buf path = mk_buf_growing(1 << 16);
    struct wr_cpu cpu;
    mk_err e = f->n ? wr_cgroup_find(f->all[0].pid, &path) : -ENOENT;
    if (!e)
        e = wr_cgroup_read_cpu(path.p, &cpu) ? check_tree_owns_cgroup(f, path.p) : -ENOENT;
    if (e)
        mk_buf_free(&path);
    else
        f->cgroup = path.p;
    return e != -ENOMEM;
}

struct cgroup_check {
    struct wr_process_tree *tree;
    size_t n_roots; /* roots of the tree found in the cgroup */
    bool has_foreign_process;
};

static bool check_cgroup_member(void *data, pid_t pid)
{
    enum { INIT = 1 };
    struct cgroup_check *w = data;
    const struct wr_process *p = wr_process_tree_find(w->tree, pid);
    w->n_roots += p && p->is_root;
    w->has_foreign_process |= pid == getpid() || (pid == INIT && !p);
    return true;
}

static size_t count_roots(const struct wr_process_tree *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->all[i].is_root;
    return n;
}

static const char *cgroup_error(struct wr_process_tree *f, const char *path)
{
    struct cgroup_check w = {.tree = f};
    struct wr_cpu cpu;
    if (!wr_cgroup_read_cpu(path, &cpu) || wr_cgroup_visit_processes(path, check_cgroup_member, &w) != 0)
        return "--cgroup expects the folder of a version 2 control group that counts processor time, such as "
               "one below /sys/fs/cgroup";
    if (w.has_foreign_process)
        return "that control group also contains wr itself or process 1, so it counts more than the server: "
               "give the server its own control group";
    if (w.n_roots < count_roots(f))
        return "that control group lacks some or all of the server's processes: write their "
               "numbers "
               "into its file cgroup.procs first";
    return NULL;
}

const char *wr_process_tree_use_cgroup(struct wr_process_tree *f, const char *folder)
{
    struct mk_buf path = mk_buf_growing(1 << 16);
    mk_buf_add(&path, mk_str_from_c(folder));
    mk_buf_add_char(&path, '\0');
    const char *error = path.failed ? "out of memory" : cgroup_error(f, path.p);
    if (error) {
        mk_buf_free(&path);
        return error;
    }
    f->cgroup = path.p;
    return wr_process_tree_add_descendants(f) ? NULL : "out of memory";
}

static void remove_ended_process(struct wr_process_tree *f, size_t at)
{
    struct wr_process p = f->all[at];
    struct wr_process *parent = wr_process_tree_find(f, p.parent);
    struct wr_cpu used = p.self, lost = wr_process_unreaped_child_cpu(&p);
    wr_cpu_add(&used, &p.waited);
    wr_cpu_add(&used, &lost);
    /* The kernel adds the CPU time to that of the parent if the parent reaps the process;
     * wr_process_unreaped_child_cpu() shows whether the parent has done so. */
    wr_cpu_add(parent ? &parent->vanished : &f->lost, &used);
    struct wr_switches switches = wr_process_switches(&p);
    f->ended.voluntary += switches.voluntary;
    f->ended.involuntary += switches.involuntary;
    for (size_t i = at + 1; i < f->n; i++)
        f->all[i - 1] = f->all[i];
    f->n--;
    wr_process_fini(&p);
}

void wr_process_tree_read_process_cpu(struct wr_process_tree *f, struct wr_cpu *sum)
{
    /* Parents first: if a child is reaped in between, its time is missing from the sum rather than counted
     * twice. */
    for (size_t i = 0; i < f->n; i++)
        if (!f->all[i].is_gone) {
            wr_process_read_cpu(&f->all[i]);
            f->all[i].is_new = false;
        }
    for (size_t i = f->n; i-- > 0;) /* roots are kept, so that wr can report their exit */
        if (f->all[i].is_gone && !f->all[i].is_root)
            remove_ended_process(f, i);
    *sum = f->lost;
    for (size_t i = 0; i < f->n; i++) {
        struct wr_cpu lost = wr_process_unreaped_child_cpu(&f->all[i]);
        wr_cpu_add(sum, &f->all[i].self);
        wr_cpu_add(sum, &f->all[i].waited);
        wr_cpu_add(sum, &lost);
    }
}

void wr_process_tree_sum_cpu_of_new(const struct wr_process_tree *f, struct wr_cpu *sum)
{
    *sum = (struct wr_cpu){0, 0, 0};
    for (size_t i = 0; i < f->n; i++) {
        if (!f->all[i].is_new)
            continue;
        wr_cpu_add(sum, &f->all[i].self);
        wr_cpu_add(sum, &f->all[i].waited);
    }
}

void wr_process_tree_read_cpu(struct wr_process_tree *f, struct wr_cpu *sum)
{
    if (!f->cgroup)
        wr_process_tree_read_process_cpu(f, sum);
    else if (wr_cgroup_read_cpu(f->cgroup, sum))
        f->cgroup_cpu = *sum;
    else
        *sum = f->cgroup_cpu; /* the cgroup was removed with its last process */
}

bool wr_process_tree_read_threads(struct wr_process_tree *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!wr_process_read_threads(&f->all[i]))
            return false;
    return true;
}

void wr_process_tree_read_memory(struct wr_process_tree *f)
{
    for (size_t i = 0; i < f->n; i++)
        wr_process_read_memory(&f->all[i]);
}

struct wr_switches wr_process_tree_context_switches(const struct wr_process_tree *f)
{
    struct wr_switches sum = f->ended;
    for (size_t i = 0; i < f->n; i++) {
        struct wr_switches s = wr_process_switches(&f->all[i]);
        sum.voluntary += s.voluntary;
        sum.involuntary += s.involuntary;
    }
    return sum;
}

bool wr_process_tree_pss_kb(const struct wr_process_tree *f, uint64_t *kb)
{
    bool any = false, all = true;
    *kb = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct wr_process *p = &f->all[i];
        any |= p->pss_is_known;
        all &= p->pss_is_known || p->is_gone || p->is_dead;
        *kb += p->pss_kb;
    }
    return any && all;
}

uint64_t wr_process_tree_hwm_kb(const struct wr_process_tree *f)
{
    uint64_t kb = 0;
    for (size_t i = 0; i < f->n; i++)
        kb += f->all[i].hwm_kb;
    return kb;
}

void wr_process_tree_affinity(const struct wr_process_tree *f, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->all[i].n_threads; k++) {
            cpu_set_t cores;
            if (sched_getaffinity(f->all[i].threads[k].tid, sizeof cores, &cores) == 0)
                CPU_OR(out, out, &cores);
        }
}

void wr_process_tree_start_interval(struct wr_process_tree *f)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->all[i].n_threads; k++)
            f->all[i].threads[k].run_at_start = f->all[i].threads[k].run;
}

unsigned wr_process_tree_count_threads(const struct wr_process_tree *f, uint64_t least_ns,
                                       uint64_t *waited_ns, uint64_t *longest_ns)
{
    unsigned n = 0;
    *waited_ns = *longest_ns = 0;
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->all[i].n_threads; k++) {
            const struct wr_thread *t = &f->all[i].threads[k];
            uint64_t ran = t->run.ran > t->run_at_start.ran ? t->run.ran - t->run_at_start.ran : 0;
            n += ran >= least_ns;
            if (ran > *longest_ns)
                *longest_ns = ran;
            if (t->run.waited > t->run_at_start.waited)
                *waited_ns += t->run.waited - t->run_at_start.waited;
        }
    return n;
}
