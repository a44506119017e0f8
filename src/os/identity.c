/* SPDX-License-Identifier: Apache-2.0 */
#include "os/identity.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/platform.h"

mk_err mk_identity_find(const char *user, const char *group, struct mk_identity *out)
{
    if (!mk_platform.owns_process)
        return -ENOENT;
    const struct passwd *pw = getpwnam(user);
    if (!pw || strlen(user) >= sizeof out->user)
        return -ENOENT;
    snprintf(out->user, sizeof out->user, "%s", user);
    out->uid = pw->pw_uid;
    out->gid = pw->pw_gid;
    const struct group *gr = group && *group ? getgrnam(group) : NULL;
    if (group && *group && !gr)
        return -ENOENT;
    out->gid = gr ? gr->gr_gid : out->gid;
    out->n_groups = MK_IDENTITY_GROUPS;
    if (getgrouplist(user, out->gid, out->groups, &out->n_groups) >= 0)
        return 0;
    mk_err e =
        out->n_groups > MK_IDENTITY_GROUPS ? 0 : -ENOMEM; /* getgrouplist() stored the required number */
    out->n_groups = -1;
    return e;
}

/* Checks that all IDs are those of the user, and that the process cannot become root again. */
static mk_err check_irrevocable(const struct mk_identity *id)
{
    uid_t r, e, s;
    gid_t gr, ge, gs;
    if (getresuid(&r, &e, &s) < 0 || getresgid(&gr, &ge, &gs) < 0)
        return mk_err_last();
    bool ours =
        r == id->uid && e == id->uid && s == id->uid && gr == id->gid && ge == id->gid && gs == id->gid;
    if (!ours || (id->uid != 0 && setuid(0) == 0))
        return -EPERM;
    return 0;
}

mk_err mk_identity_become(const struct mk_identity *id)
{
    int dumpable = prctl(PR_GET_DUMPABLE);
    if (initgroups(id->user, id->gid) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
        setresuid(id->uid, id->uid, id->uid) < 0)
        return mk_err_last();
    /* The change of IDs has disabled core dumps and debuggers. Restores the previous setting: only the
     * administrator, or a plugin with secrets in our memory, should disable them. */
    (void)prctl(PR_SET_DUMPABLE, dumpable != 0);
    return check_irrevocable(id);
}

static mk_err save_own_groups(struct mk_identity_saved *own)
{
    *own = (struct mk_identity_saved){.n_groups = getgroups(0, NULL), .dumpable = prctl(PR_GET_DUMPABLE)};
    if (own->n_groups < 0)
        return mk_err_last();
    own->groups = mk_mem_zalloc((size_t)own->n_groups + 1, sizeof *own->groups);
    if (!own->groups)
        return -ENOMEM;
    return getgroups(own->n_groups, own->groups) == own->n_groups ? 0 : -EAGAIN;
}

static int set_groups_of(const struct mk_identity *id)
{
    return id->n_groups < 0 ? initgroups(id->user, id->gid) : setgroups((size_t)id->n_groups, id->groups);
}

/* setfsuid and setfsgid return the previous ID and report no error: an invalid ID changes nothing. */
static bool set_filesystem_ids(uid_t uid, gid_t gid)
{
    (void)setfsgid(gid);
    (void)setfsuid(uid);
    return (gid_t)setfsgid((gid_t)-1) == gid && (uid_t)setfsuid((uid_t)-1) == uid;
}

mk_err mk_identity_impersonate(const struct mk_identity *id, struct mk_identity_saved *own)
{
    if (!mk_platform.owns_process)
        return -EPERM;
    mk_err e = save_own_groups(own);
    if (!e && set_groups_of(id) < 0)
        e = mk_err_last();
    if (e) {
        mk_mem_free(own->groups);
        return e;
    }
    if (set_filesystem_ids(id->uid, id->gid))
        return 0;
    mk_identity_revert(own);
    return -EPERM;
}

void mk_identity_revert(struct mk_identity_saved *own)
{
    bool is_back =
        set_filesystem_ids(geteuid(), getegid()) && setgroups((size_t)own->n_groups, own->groups) == 0;
    MK_ASSERT(is_back);
    /* The changes of these IDs have disabled core dumps and debuggers. */
    if (own->dumpable == 1)
        (void)prctl(PR_SET_DUMPABLE, 1);
    mk_mem_free(own->groups);
}
