"""Stage 11 in a --mine program, on a GPU: if nvcc and a GPU are present, nvcc compiles the student's kernels."""
import concurrent.futures
import ctypes
import ctypes.util
import re
import shlex
import shutil
import subprocess

from shared import course
from testing import build_errors

FOLDER = course.BUILD / "course" / "mine_on_gpu"
COPIES = "course/mine/on_real_gpu.cu"  # copies data between the model and the GPU
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # of CUdevice_attribute


def architecture():
    """"sm_90", for the first GPU; None if the driver can use none."""
    try:
        driver = ctypes.CDLL(ctypes.util.find_library("cuda") or "libcuda.so.1")
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    calls = (lambda: driver.cuInit(0), lambda: driver.cuDeviceGet(ctypes.byref(device), 0),
             lambda: driver.cuDeviceGetAttribute(ctypes.byref(major), CAPABILITY_MAJOR, device),
             lambda: driver.cuDeviceGetAttribute(ctypes.byref(minor), CAPABILITY_MINOR, device))
    return f"sm_{major.value}{minor.value}" if all(call() == 0 for call in calls) else None


def why_not():
    """The key of the message that says why the emulator runs the kernels; None if a GPU runs them."""
    if shutil.which("nvcc") is None:
        return "mine_no_nvcc"
    return None if architecture() else "mine_no_gpu"


def compile_for(sm, source, counted):
    """The object of a .cu file; made again if the file is newer. Raises Problem with the first error of nvcc."""
    made = FOLDER / f"{sm}_{source.stem}.o"
    folders = source.parent, course.ROOT / "course" / "mine", course.ROOT / "src"
    headers = [header for folder in folders for header in folder.rglob("*.h")]
    if made.exists() and all(made.stat().st_mtime > file.stat().st_mtime for file in (source, *headers)):
        return made
    done = subprocess.run(
        ["nvcc", "-std=c++20", "-O2", "--expt-relaxed-constexpr", f"-arch={sm}",
         *(["-Xcompiler", "-finstrument-functions"] if counted else []),
         "-I", course.ROOT, "-I", course.ROOT / "src", "-I", course.ROOT / "src" / "cuda_emulator" / "include",
         "-c", source, "-o", made],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode != 0:
        made.unlink(missing_ok=True)
        raise course.Problem(build_errors.first_error(done.stdout))
    return made


def objects(stage):
    """(the student's objects, the linker options for them) for the GPU of this machine."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sm = architecture()
    sources = [stage.folder / unit["file"] for unit in stage.units]
    with course.doing(course.say("doing_nvcc")), concurrent.futures.ThreadPoolExecutor() as pool:
        made = [pool.submit(compile_for, sm, source, True) for source in sources]
        made.append(pool.submit(compile_for, sm, course.ROOT / COPIES, False))
        compiled = [str(one.result()) for one in made]
    return compiled, [*library_folders(), "-lcudart_static", "-ldl", "-lrt", "-lpthread"]


def library_folders():
    """The folders in which nvcc looks for CUDA's runtime, as linker options."""
    plan = subprocess.run(["nvcc", "--dryrun", "-c", "kernel.cu"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False).stdout
    found = re.search(r"^#\$ LIBRARIES=(.*)$", plan, re.M)
    return shlex.split(found[1]) if found else []
