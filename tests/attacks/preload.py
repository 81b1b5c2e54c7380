"""Libraries in C that replace functions of the system in a process of a test (LD_PRELOAD)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

needs_preload = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a compiler of C"
)

CLOCK = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long offset(void) {
    FILE *file = fopen(getenv("CLOCK_OFFSET_FILE"), "r");
    long seconds = 0;
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *result) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (result) *result = exact.tv_sec;
    return exact.tv_sec;
}
"""
"""Adds the seconds in the file CLOCK_OFFSET_FILE to the wall clock; the monotonic clock goes on."""


LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
static int count;
static int call(const char *name, int file, int command, void *argument) {
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    if (command == F_SETLK || command == F_SETLKW) {
        struct flock *lock = argument;
        if (lock->l_type != F_UNLCK && ++count % atoi(getenv("LOCK_EVERY")) == 0) {
            errno = atoi(getenv("LOCK_ERROR"));
            return -1;
        }
    }
    return real(file, command, argument);
}
#define FORWARD(name) int name(int file, int command, ...) { \
    va_list arguments; va_start(arguments, command); void *argument = va_arg(arguments, void *); va_end(arguments); \
    return call(#name, file, command, argument); }
FORWARD(fcntl)
FORWARD(fcntl64)
int flock(int file, int operation) { errno = atoi(getenv("LOCK_ERROR")); return -1; }
"""
"""Lets each LOCK_EVERY-th lock of a file fail with the error number LOCK_ERROR."""


def run_with(
    source: str, script: str, folder: Path, environment: Mapping[str, str], timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a Python script in ``folder`` with the functions of a C source in place of those of the system."""
    library = folder / "preload.so"
    (folder / "preload.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, folder / "preload.c", "-ldl"], check=True)
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **environment, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
