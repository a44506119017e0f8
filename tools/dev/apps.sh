#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# apps.sh [-m MONKEY] [-t CERTIFICATE KEY] dokuwiki|wordpress: serves a PHP application from Debian's packages with the
# configuration in docs/guide/php.md, and prints its addresses. Ctrl-C stops it.
#
# The script copies the package's files to a temporary folder and writes their configuration. It starts PHP-FPM, for WordPress
# also MariaDB, both on unix sockets and as an unprivileged user (www-data if root calls the script), and Monkey on free ports of
# 127.0.0.1; with -t Monkey also listens with TLS at 127.0.0.2. The packages are not modified. At the end the script stops these
# processes and removes the folder. `tools/dev/need.sh apps` installs the packages. The account is admin; the script prints the
# password.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
monkey=$here/build/release/monkey certificate='' key=''
password=Swordfish-7

die() {
    printf 'apps: %s\n' "$*" >&2
    exit 1
}

usage() {
    echo 'usage: apps.sh [-m MONKEY] [-t CERTIFICATE KEY] dokuwiki|wordpress' >&2
    exit 2
}

while [ $# -gt 1 ]; do
    case $1 in
        -m) monkey=$2 && shift 2 ;;
        -t) [ $# -gt 3 ] || usage
            certificate=$2 key=$3 && shift 3 ;;
        *) usage ;;
    esac
done
case ${1-} in
    dokuwiki) package=/usr/share/dokuwiki title=DokuWiki ;;
    wordpress) package=/usr/share/wordpress title=WordPress ;;
    *) usage ;;
esac
app=$1

fpm=$(command -v php-fpm || ls /usr/sbin/php-fpm* 2>/dev/null | tail -n 1) || fpm=
missing=
[ -n "$fpm" ] || missing+=' php-fpm'
[ -e "$package/index.php" ] || missing+=" $app"
PATH=$PATH:/usr/sbin
[ $app = dokuwiki ] || command -v mariadbd >/dev/null || missing+=' mariadb-server-core'
[ -z "$missing" ] || die "missing:$missing; tools/dev/need.sh apps installs it"
[ -x "$monkey" ] || die "$monkey is not built: make release, or -m MONKEY"

# ---- The folder and its processes ----

folder=$(mktemp -d "${TMPDIR:-/tmp}/monkey-apps.XXXXXX")
started=()

stop() {
    trap '' INT TERM
    local i
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do
        kill -TERM "${started[i]}" 2>/dev/null || true
        wait "${started[i]}" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 0' INT TERM

as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=www-data --regid=www-data --clear-groups)

# start NAME COMMAND...: runs the command in the background as the unprivileged user, with output in NAME.out.
start() {
    local name=$1
    shift
    "${as[@]}" "$@" >"$folder/$name.out" 2>&1 </dev/null &
    started+=($!)
}

# await NAME COMMAND...: waits until the command succeeds. Fails if the program started last exits first.
await() {
    local name=$1 turns=0
    shift
    until "$@" >/dev/null 2>&1; do
        kill -0 "${started[-1]}" 2>/dev/null && [ $((turns += 1)) -lt 600 ] ||
            die "$name does not serve: $(tail -n 5 "$folder/$name".*)"
        sleep 0.05
    done
}

start_php() {
    cat >"$folder/fpm.conf" <<END
[global]
error_log = $folder/fpm.log
daemonize = no
[$app]
listen = $folder/fpm.sock
listen.mode = 0666
pm = static
pm.max_children = 4
php_admin_value[error_log] = $folder/php.log
php_admin_value[log_errors] = 1
php_admin_value[post_max_size] = 64M
php_admin_value[upload_max_filesize] = 64M
php_admin_value[upload_tmp_dir] = $folder/tmp
php_admin_value[sys_temp_dir] = $folder/tmp
php_admin_value[session.save_path] = $folder/tmp
END
    start fpm "$fpm" -F -y "$folder/fpm.conf"
    await fpm grep -q 'ready to handle connections' "$folder/fpm.log"
}

# ---- DokuWiki ----

# Uses the layout of DokuWiki's own archive: Debian's package moves the configuration and the pages elsewhere in preload.php.
install_dokuwiki() {
    local site=$folder/dokuwiki name
    mkdir -p "$site/conf"
    # Translations are three quarters of the files.
    tar -C "$package" -ch --exclude='*/lang/[!e]*' --exclude='*/lang/e[!n]*' --exclude=./lib/plugins/testing . | tar -C "$site" -x
    rm -f "$site/inc/preload.php" "$site/install.php"
    for name in attic cache index locks log media media_attic media_meta meta pages tmp; do
        mkdir -p "$site/data/$name"
    done
    cp /etc/dokuwiki/*.conf /etc/dokuwiki/{dokuwiki,license,mediameta}.php /etc/dokuwiki/plugins*.php "$site/conf/"
    cat >"$site/conf/local.php" <<'END'
<?php
$conf['title'] = 'A wiki behind Monkey';
$conf['savedir'] = './data';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['userewrite'] = 1;
$conf['updatecheck'] = 0;
END
    printf '*\t@ALL\t1\n*\t@admin\t16\n' >"$site/conf/acl.auth.php"
    printf 'admin:%s:Admin:admin@example.org:admin,user\n' "$(openssl passwd -1 "$password")" >"$site/conf/users.auth.php"
}

# ---- WordPress ----

start_mariadb() {
    local data=$folder/database options
    # A separate tmpdir: at startup mariadbd deletes all temporary tables in it, also those of other servers.
    options=(--no-defaults "--datadir=$data" "--tmpdir=$folder/tmp" "--socket=$folder/db.sock")
    "${as[@]}" mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal --skip-test-db \
        >"$folder/install-db.out" 2>&1 || die "MariaDB was not installed: $(grep -i -m 5 'error\|fail' "$folder/install-db.out")"
    cat >"$folder/init.sql" <<END
CREATE DATABASE wordpress;
CREATE USER wordpress@localhost IDENTIFIED BY '$password';
GRANT ALL ON wordpress.* TO wordpress@localhost;
END
    start db mariadbd "${options[@]}" --skip-networking "--init-file=$folder/init.sql" "--pid-file=$folder/db.pid" \
        --innodb-buffer-pool-size=16M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0
    await db php -r "mysqli_report(MYSQLI_REPORT_OFF);
        exit(mysqli_connect('localhost', 'wordpress', '$password', 'wordpress', 0, '$folder/db.sock') ? 0 : 1);"
}

# Does not use Debian's wp-config.php, which includes files from /etc.
install_wordpress() {
    local site=$folder/wordpress
    cp -rL "$package" "$site"
    mkdir -p "$site/wp-content/uploads"
    {
        echo '<?php'
        for name in DB_NAME:wordpress DB_USER:wordpress "DB_PASSWORD:$password" "DB_HOST:localhost:$folder/db.sock"; do
            echo "define('${name%%:*}', '${name#*:}');"
        done
        for name in AUTH_KEY SECURE_AUTH_KEY LOGGED_IN_KEY NONCE_KEY AUTH_SALT SECURE_AUTH_SALT LOGGED_IN_SALT NONCE_SALT; do
            echo "define('$name', '$(openssl rand -hex 32)');"
        done
        cat <<'END'
// The same site at every address, for this script alone: a real one has a name.
if (PHP_SAPI != 'cli') {
    define('WP_HOME', (empty($_SERVER['HTTPS']) ? 'http://' : 'https://') . $_SERVER['HTTP_HOST']);
    define('WP_SITEURL', WP_HOME);
}
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
END
    } >"$site/wp-config.php"
    start_mariadb
    php -d display_errors=stderr -r "
        define('WP_INSTALLING', true);
        \$_SERVER['HTTP_HOST'] = 'localhost';
        require '$site/wp-load.php';
        require ABSPATH . 'wp-admin/includes/upgrade.php';
        function wp_new_blog_notification() {}
        wp_install('A blog behind Monkey', 'admin', 'admin@example.org', true, '', '$password');" \
        >"$folder/install.out" 2>&1 || die "WordPress was not installed: $(tail -n 5 "$folder/install.out")"
}

# ---- Monkey ----

# Extracts the configuration below a heading of the guide, and adapts addresses and folders.
write_configuration() {
    awk -v heading="## $title" '
        $0 == heading { below = 1; next }
        /^## / { below = 0 }
        below && /^    / { print substr($0, 5); shown = 1; next }
        below && /^$/ && shown { print; next }
        shown { exit }' "$here/docs/guide/php.md" >"$folder/guide.conf"
    sed -e 's|\(Listen *\) 80$|\1 127.0.0.1:0|' -e "s|/srv/www/|$folder/|" \
        -e "s|unix:/run/php/php-fpm.sock|unix:$folder/fpm.sock|" "$folder/guide.conf" >"$folder/monkey.conf"
    [ ${#as[@]} -gt 0 ] || sed -i '/^    User /d' "$folder/monkey.conf"
    [ -z "$certificate" ] || sed -i "s|^    Listen .*|&\n    Listen 127.0.0.2:0 tls\n    Certificate $certificate $key|" "$folder/monkey.conf"
}

chmod 755 "$folder"
mkdir -m 777 "$folder/tmp"
[ ${#as[@]} -eq 0 ] || chown www-data: "$folder"
"install_$app"
write_configuration
[ ${#as[@]} -eq 0 ] || find "$folder" -user root -exec chown -h www-data: {} +
start_php
printf 'folder: %s\naccount: admin\npassword: %s\n' "$folder" "$password"
"$monkey" -c "$folder/monkey.conf" </dev/null &
started+=($!)
wait "${started[-1]}"
