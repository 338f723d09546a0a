#!/usr/bin/env python3
"""Tests that libl3_data_cuda.so exports only its entry point, and reports the reason if there is no GPU.

Usage: cuda_library_test.py LIBL3_DATA_CUDA_SO
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

ENTRY = "l3_data_open_cuda_device"
VERSION = 1  # kDeviceVersion
ERROR_DEVICE = 9


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("offset", ctypes.c_uint64), ("tile", ctypes.c_uint64),
                ("reason", ctypes.c_char_p)]


def main() -> int:
    library = sys.argv[1]
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = [line.split()[-1] for line in listed.splitlines()]
    if exported != [ENTRY]:
        print(f"it exports {exported}")
        return 1
    open_device = ctypes.CDLL(library)[ENTRY]
    open_device.restype = ctypes.c_void_p
    for version, number in ((VERSION, 0), (VERSION + 1, 0), (VERSION, 1000)):
        error = Error()
        device = open_device(version, number, ctypes.byref(error))
        reason = (error.reason or b"").decode()
        print(f"version {version}, device {number}: {'opened' if device else reason}")
        if device and (version, number) == (VERSION, 0):
            continue
        if device or error.status != ERROR_DEVICE or not reason:
            print("that was to be an error of the device, with a reason")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
