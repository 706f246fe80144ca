#!/bin/busybox sh
# The first process of a guest: loads modules, lays this machine's root directory (9p, read-only) under a layer in
# memory, and goes on there.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in $($b cat /modules/list); do
    $b insmod "/modules/$module.ko" || $b echo "guest: the module $module was not loaded"
done
# What programs map of the lower files is read once.
$b mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=512000,cache=mmap host /lower
$b mount -t tmpfs -o mode=755,size=80% layer /upper
$b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
for place in proc sys dev; do $b mount --move "/$place" "/new/$place"; done
$b mkdir -p /new/dev/pts /new/dev/shm
$b mount -t devpts devpts /new/dev/pts
$b mount -t tmpfs -o mode=1777 shm /new/dev/shm
$b mount -t tmpfs -o mode=755 run /new/run
$b mkdir -p /new/run/guest /new/run/netns
$b cp -a /guest/. /new/run/guest/
$b cp /bin/busybox /new/run/guest/busybox
$b echo "::sysinit:/bin/sh /run/guest/start" >/new/etc/inittab
exec $b switch_root /new /run/guest/busybox init
