"""The emulator of CUDA reports nothing for correct kernels, and the mistake of each broken kernel.

Standard library only; ctest runs it.
"""
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))

import cuda_check  # noqa: E402
import cuda_compile  # noqa: E402


def expectations(source):
    """kernel -> (kinds, marked lines) from the comments of broken.cu."""
    found, kinds, name = {}, None, None
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.match(r"// expect: (.*)", line):
            kinds = set(match[1].split(", "))
        elif match := re.match(r"__global__ void (\w+)", line):
            name = match[1]
            found[name] = (kinds, set())
            kinds = None
        elif line.endswith("// <-"):
            found[name][1].add(f"{source.name}:{number}")
    return found


class Kernels(unittest.TestCase):
    def test_correct_kernels_have_no_finding(self):
        report, code = cuda_check.check(HERE / "correct.cu")
        self.assertEqual(report.findings, [])
        self.assertEqual(code, 0, "a kernel computed a wrong result")
        sections = re.findall(r"^//// (\w+)", (HERE / "correct.cu").read_text(), re.M)
        self.assertEqual({kernel.name.split("<")[0] for kernel in report.kernels}, set(sections) - {"main"})

    def test_correct_products_of_a_warp_have_no_finding(self):
        report, wrong = cuda_check.check(HERE / "fragments.cu")
        self.assertEqual((report.findings, wrong), ([], 0))
        # A lane reads 16 bytes of a row. There are 16 rows; a row of floats has two sectors.
        lines = (HERE / "fragments.cu").read_text().splitlines()
        number = 1 + next(i for i, line in enumerate(lines) if "load_matrix_sync(sums, c" in line)
        counts = report.kernels[0].lines[(f"fragments.cu:{number}", "global", "read")]
        self.assertEqual((counts["sectors"], counts["bytes"]), (6 * 4 * 16, 6 * 16 * 16 * 4))

    def test_functions_have_the_values_of_cudas_manual(self):
        report, wrong = cuda_check.check(HERE / "functions.cu")
        self.assertEqual((report.findings, wrong), ([], 0))

    def test_functions_that_access_memory_do_so_without_checks_too(self):
        source = HERE / "unchecked.cu"
        report, wrong = cuda_check.check(source, trusted=True)  # trusted: it starts a thread
        self.assertEqual((report.findings, wrong), ([], 0))
        with tempfile.TemporaryDirectory() as folder:
            thing, program = (pathlib.Path(folder) / name for name in ("unchecked.o", "unchecked"))
            compiler = os.environ.get("CXX", "g++")
            subprocess.run([sys.executable, cuda_compile.__file__, "--fast", compiler, "-o", thing, "-c", source],
                           check=True)
            subprocess.run([compiler, "-no-pie", thing, cuda_check.emulator_object(), "-pthread", "-o", program],
                           check=True)
            text = pathlib.Path(folder) / "report"
            text.touch()
            done = subprocess.run([program, "from another thread"], check=False, timeout=60,
                                  env=dict(os.environ, CUDA_CHECK_REPORT=str(text)))
            self.assertEqual((done.returncode, text.read_text()), (0, "end\texit\n"))

    def test_each_broken_kernel_has_its_finding_and_no_other(self):
        source = HERE / "broken.cu"
        report, _ = cuda_check.check(source)
        by_kernel = {}
        for finding in report.findings:
            match = re.match(r"kernel (\w+): ", finding.text)
            self.assertTrue(match, finding)
            by_kernel.setdefault(match[1], []).append(finding)
        expected = expectations(source)
        self.assertGreaterEqual(len(expected), 40)
        for name, (kinds, lines) in expected.items():
            with self.subTest(name):
                findings = by_kernel.pop(name, [])
                self.assertEqual({f.kind for f in findings}, kinds, findings)
                text = " ".join(f"{f.place} {f.text}" for f in findings)
                for line in lines:
                    self.assertRegex(text, re.escape(line) + r"\b")
        self.assertEqual(by_kernel, {})


def ladders(handout):
    """[[{what: number}, ... per step], ...]: one list per table of steps in a handout of stage 11, in their order."""
    names = {"sectors": ("sectors per request", "每个请求的扇区"), "times": ("bytes / minimum", "字节数 / 最少字节数"),
             "conflicts": ("conflicts per request", "每个请求的冲突")}
    found, columns = [], None
    for line in handout.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] in ("step", "步骤"):
            columns = [next((name for name, heads in names.items() if cell in heads), None) for cell in cells]
            found.append([])
        elif not cells:
            columns = None
        elif columns and cells[0].isdigit():
            found[-1].append({name: float(cell) for name, cell in zip(columns, cells) if name and cell})
    return found


class Handouts(unittest.TestCase):
    def test_each_step_of_stage_11_has_the_counts_that_the_handouts_say(self):
        report, code = cuda_check.check(HERE / "ladder.cu")
        self.assertEqual((report.findings, code), ([], 0))
        kernels = {kernel.name: kernel for kernel in report.kernels}
        # The tiles are shared arrays of a __device__ function.
        shared = {step: kernels[f"matmul_transb_{step}"].shared_bytes for step in range(1, 6)}
        self.assertEqual(shared, {1: 0, 2: 0, 3: 2 * 16 * 16 * 4, 4: 2 * 32 * 32 * 4, 5: 32 * (32 + 33) * 4})
        stage = HERE.parent.parent / "stages" / "11-cuda"
        for handout in (stage / "README.md", stage / "README.zh.md"):
            tables = ladders(handout)
            self.assertEqual([len(table) for table in tables], [2, 5, 3], handout)
            for name, table in zip(("rms_norm", "matmul_transb", "attention"), tables):
                for step, said in enumerate(table, 1):
                    with self.subTest(handout=handout.name, kernel=name, step=step):
                        self.assertEqual(said, self.counted(kernels[f"{name}_{step}"], said))
                        self.assertIn("times", said)

    @staticmethod
    def counted(kernel, wanted):
        lines = [counts for (_, space, _), counts in kernel.lines.items() if space == "global"]
        worst = max(lines, key=lambda counts: counts["sectors"] - counts["ideal"])
        shared = [counts["conflicts"] / counts["requests"] for (_, space, _), counts in kernel.lines.items()
                  if space == "shared"]
        every = {"sectors": worst["sectors"] / worst["requests"], "conflicts": max(shared, default=0),
                 "times": round(32 * kernel.total("sectors") / kernel.distinct_bytes, 1)}
        return {name: every[name] for name in wanted}

    def test_counts_are_those_of_the_arithmetic_on_paper(self):
        source = HERE / "counts.cu"
        report, _ = cuda_check.check(source)
        self.assertEqual(report.findings, [])
        counted = {key: counts for kernel in report.kernels for key, counts in kernel.lines.items()}
        compared = 0
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = re.search(r"// count: (\w+) (\w+) ([\d ]+)$", line)
            if match is None:
                continue
            space, way, numbers = match.groups()
            names = ("requests", "sectors", "ideal") if space == "global" else ("requests", "conflicts")
            compared += 1
            with self.subTest(line.strip()):
                counts = counted[(f"counts.cu:{number}", space, way)]
                self.assertEqual([counts[name] for name in names], list(map(int, numbers.split())))
        self.assertGreater(compared, 20)

    def test_arithmetic_and_bytes_per_kernel(self):
        report, _ = cuda_check.check(HERE / "counts.cu")
        kernels = {kernel.name: kernel for kernel in report.kernels}
        if platform.machine() == "x86_64":
            self.assertEqual(kernels["product_naive"].flops, 2 * 64 ** 3)
            self.assertEqual(kernels["product_tiled"].flops, 2 * 64 ** 3)
        for name in ("product_naive", "product_tiled"):
            self.assertEqual(kernels[name].distinct_bytes, 3 * 64 * 64 * 4)
        self.assertEqual(kernels["product_tiled"].shared_bytes, 2 * 32 * 33 * 4)


# Each would switch the checker off, or forge its report. "{folder}" stands for the folder of hidden.h.
ATTACKS = {
    "attribute": '__attribute__((no_sanitize("thread"))) __global__ void k(int* x) { *x = 1; }',
    "attribute in brackets": '[[gnu::no_sanitize_thread]] __global__ void k(int* x) { *x = 1; }',
    "using an attribute's namespace": '[[using gnu: no_sanitize_thread]] __global__ void k(int* x) { *x = 1; }',
    "asm": '__global__ void k(int* x) { asm volatile("movl $1, (%0)" : : "r"(x)); }',
    "asm in two halves": '#define JOIN(a, b) a##b\n__global__ void k(int* x) { JOIN(as, m)("nop"); }',
    "asm that claims to be in a header": '#line 1 "/usr/include/math.h" 3\nvoid f() { asm("nop"); }',
    "asm in place of a header's":
        '#define __asm__(x)\n#include <stdlib.h>\n#undef __asm__\nvoid f() { __asm__("nop"); }',
    "asm in a header elsewhere": '#include "/usr/../{folder}/hidden.h"\n',
    "pragma": '#pragma GCC optimize("O2")\n__global__ void k(int* x) { *x = 1; }',
    "pragma operator": '_Pragma("GCC push_options") __global__ void k(int* x) { *x = 1; }',
    "own checker": 'extern "C" void __tsan_write4(void*) {}',
    "emulator's variable":
        'namespace cuda_emulator { extern void* current; }\nvoid f() { cuda_emulator::current = nullptr; }',
    "emulator's variable by its symbol": 'extern "C" void* _ZN13cuda_emulator7currentE;\n'
                                         'void f() { _ZN13cuda_emulator7currentE = nullptr; }',
    "counter of arithmetic":
        'extern "C" unsigned long long cuda_emulator_flops;\nvoid f() { cuda_emulator_flops = 0; }',
    "store that is not instrumented": '#include <immintrin.h>\nvoid f(float* x) { _mm_stream_ps(x, __m128{}); }',
    "builtin": 'void f(float* x) { __builtin_ia32_movntps(x, __attribute__((vector_size(16))) float{}); }',
    "own write": '#include <stddef.h>\nextern "C" long write(int, const void*, size_t n) { return n; }',
    "own new": '#include <stdlib.h>\nvoid* operator new(size_t n) { return malloc(n); }',
    "file": '#include <stdio.h>\nvoid f() { fopen("/proc/self/fd/3", "w"); }',
    "file of C++": '#include <fstream>\nvoid f() { std::ofstream("/proc/self/fd/3") << "end"; }',
    "system call": '#include <unistd.h>\nvoid f() { syscall(1, 3, "end", 3); }',
    "end without a report": '#include <unistd.h>\nvoid f() { _exit(0); }',
    "protection": '#include <sys/mman.h>\nvoid f() { mprotect(nullptr, 4096, 7); }',
    "thread": '#include <thread>\nvoid f() { std::thread([] {}).join(); }',
    "jump": '#include <setjmp.h>\njmp_buf place;\nvoid f() { longjmp(place, 1); }',
}

# These are refused or reported when they run.
LATE_ATTACKS = {
    "forbidden": '__global__ void k() {}\n'
                 'int main() { const_cast<unsigned&>(blockDim.x) = 1; cuda_launch(k, {1, 1}); }',
    "out of bounds": '__global__ void k() { const_cast<unsigned&>(blockDim.x) = 1; }\n'
                     'int main() { cuda_launch(k, {1, 1}); }',
    "crash": '__global__ void k() { exit(0); }\nint main() { cuda_launch(k, {1, 1}); }',
    "deadlock": '__global__ void k(int* x) { while (*(volatile int*)x == 0) {} }\n'
                'int main() { int* x; cudaMalloc(&x, 4); cudaMemset(x, 0, 4); cuda_launch(k, {1, 1}, x); }',
    "host access": '__global__ void k() {}\n'
                   'int main() { int* x; cudaMalloc(&x, 4); *x = 1; cuda_launch(k, {1, 1}); }',
    "launch": '__global__ void k() {}\nint main() { cuda_launch(k, {1, 2048}); }',
}


class Attacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "hidden.h").write_text('inline void hidden() { asm("nop"); }\n')

    def source(self, text):
        file = self.folder / "attack.cu"
        first = '#include "cuda_emulator.h"' if "__global__" in text else ""  # whoever needs it not is compiled sooner
        file.write_text(f"{first}\n{text}\n")
        return file

    def test_a_program_that_could_blind_the_checker_is_refused(self):
        for name, text in ATTACKS.items():
            with self.subTest(name):
                source = self.source(text.replace("{folder}", str(self.folder)) + "\nint main() {}")
                with self.assertRaisesRegex(cuda_check.Problem, "expected (only code|names|functions)"):
                    cuda_check.build(source, self.folder)

    def test_what_cannot_be_seen_before_is_found_when_it_runs(self):
        for kind, text in LATE_ATTACKS.items():
            with self.subTest(kind):
                report, _ = cuda_check.check(self.source(text))
                self.assertEqual({finding.kind for finding in report.findings}, {kind})

    def test_a_launch_that_no_gpu_can_run_is_found_at_its_line(self):
        shapes = {"{1, 2048}": "1024 threads", "{1, dim3(1, 1, 65)}": "64 of them along z", "{0, 32}": "one block",
                  "{dim3(1, 65536), 1}": "65535", "{dim3(65535, 65535), 1024}": r"2\^32",
                  "{1, 32, 300000}": "shared memory"}
        launches = "".join(f"  cuda_launch(k, {shape});\n" for shape in shapes)
        report, _ = cuda_check.check(self.source(f"__global__ void k() {{}}\nint main() {{\n{launches}}}"))
        self.assertEqual(len(report.findings), len(shapes))
        for i, (found, limit) in enumerate(zip(report.findings, shapes.values())):
            self.assertEqual((found.kind, found.place), ("launch", f"attack.cu:{4 + i}"))
            self.assertRegex(found.text, f"kernel k: expected .*{limit}")

    def test_shared_memory_has_the_limits_of_a_gpu(self):
        report, _ = cuda_check.check(self.source("""
__global__ void dynamic() { extern __shared__ int a[]; a[threadIdx.x] = 1; }
__global__ void asks() { extern __shared__ int a[]; a[threadIdx.x] = 1; }
__global__ void fixed() { __shared__ int a[12289]; a[threadIdx.x] = 1; }
__device__ void use() { __shared__ int a[10000]; a[threadIdx.x] = 1; }
__global__ void calls() { __shared__ int a[5000]; a[threadIdx.x] = 1; use(); }
int main() {
  cuda_launch(dynamic, {1, 32, 49152});
  cuda_launch(dynamic, {1, 32, 49153});
  if (cudaFuncSetAttribute(asks, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000) != cudaSuccess) return 1;
  if (cudaFuncSetAttribute(asks, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000) == cudaSuccess) return 1;
  cuda_launch(asks, {1, 32, 60000});
  cuda_launch(asks, {1, 32, 60001});
  cuda_launch(fixed, {1, 32});
  cuda_launch(calls, {1, 32});
}"""))
        self.assertEqual([(found.kind, found.place.partition(":")[2], found.text) for found in report.findings], [
            ("launch", "10", "kernel dynamic: expected at most 49152 bytes of shared memory without "
                             "cudaFuncSetAttribute, found 49153"),
            ("launch", "14", "kernel asks: expected at most 60000 bytes of dynamic shared memory (the limit set by "
                             "cudaFuncSetAttribute), found 60001"),
            ("launch", "15", "kernel fixed: expected at most 49152 bytes of shared arrays of fixed size, found 49156"),
            ("launch", "16", "kernel calls: expected at most 49152 bytes of shared arrays of fixed size, found 60000")])

    def test_what_a_gpu_refuses_while_it_records_is_found_at_its_line(self):
        calls = {
            "cudaMalloc(&x, 4)": "cudaMalloc",
            "cudaMemcpy(&number, y, 4, cudaMemcpyDeviceToHost)": "cudaMemcpy", "cudaMemset(y, 0, 4)": "cudaMemset",
            "cudaMemcpyAsync(&number, y, 4, cudaMemcpyDeviceToHost, nullptr)": "cudaMemcpyAsync",
            "cudaDeviceSynchronize()": "cudaDeviceSynchronize", "cudaStreamQuery(s)": "cudaStreamQuery",
            "cudaStreamSynchronize(s)": "cudaStreamSynchronize", "cuda_launch(k, {1, 1})": "a kernel in the default",
            "cudaFree(y)": "cudaFree"}
        program = """__global__ void k() {}
int main() {
  int number = 0, *x, *y; cudaStream_t s; cudaGraph_t graph; cudaMalloc(&y, 4); cudaMemset(y, 0, 4);
  cudaStreamCreateWithFlags(&s, FLAGS); cudaStreamBeginCapture(s, MODE);
  cudaMallocAsync(&x, 4, s);  // becomes a part of the record
CALLS  cuda_launch(k, {1, 1, 0, s});
  return cudaStreamEndCapture(s, &graph) == cudaSuccess ? 0 : 1;
}"""
        def findings(flags, mode):
            text = program.replace("FLAGS", flags).replace("MODE", mode)
            report, code = cuda_check.check(self.source(
                text.replace("CALLS", "".join(f"  {call};\n" for call in calls))))
            self.assertEqual((code, {finding.kind for finding in report.findings}), (0, {"recording"}))
            return [(finding.place, finding.text) for finding in report.findings]

        found = findings("cudaStreamDefault", "cudaStreamCaptureModeThreadLocal")
        self.assertEqual(len(found), len(calls))
        for line, ((place, text), call) in enumerate(zip(found, calls.values()), 7):
            self.assertEqual(place, f"attack.cu:{line}")
            self.assertRegex(text, f"^host code calls {call}")
        # Such a stream does not wait for the default stream, and this mode permits calls for memory.
        found = findings("cudaStreamNonBlocking", "cudaStreamCaptureModeRelaxed")
        self.assertEqual([text.split()[3] for _, text in found],
                         ["cudaDeviceSynchronize", "cudaStreamQuery", "cudaStreamSynchronize"])

    def test_an_ordinary_program_with_the_standard_library_is_not_refused(self):
        report, code = cuda_check.check(self.source(ORDINARY))
        self.assertEqual((report.findings, code), ([], 0))

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere unset variables are finite")
    def test_no_product_with_0_hides_a_local_variable_without_a_value(self):
        report, n_nan = cuda_check.check(self.source(UNSET))
        self.assertEqual((report.findings, n_nan), ([], 3 + 3 + 4 + 100 + 20 + 4 + 10 + 3 + 1 + 43))

    def test_the_command_says_what_is_wrong_in_one_line(self):
        def run(*words, **environment):
            return subprocess.run([sys.executable, cuda_check.__file__, *map(str, words)],
                                  env=dict(os.environ, **environment), capture_output=True, text=True, check=False)
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run(self.folder / "none.cu").returncode, 2)
        self.assertEqual(run("--seconds", 0, self.folder / "hidden.h").returncode, 2)
        missing = run(self.source("int main() {}"), CXX="no-such-compiler")
        self.assertEqual((missing.returncode, missing.stderr), (1, "cuda-check: expected the C++ compiler "
                                                                   "no-such-compiler, found none\n"))
        broken = run(self.source("int main() { return x; }"))
        self.assertEqual((broken.returncode, broken.stderr.count("\n")), (1, 1), broken.stderr)
        self.assertIn("attack.cu:2", broken.stderr)
        nvcc = run(self.source("__global__ void k() {}\nint main() { k<<<1, 32>>>(); }"))
        self.assertEqual((nvcc.returncode, nvcc.stderr.count("\n")), (1, 1), nvcc.stderr)
        self.assertRegex(nvcc.stderr, r"attack\.cu:3: error: expected cuda_launch\(")
        endless = run("--seconds", 1, self.source("int main() { for (;;) {} }"))
        self.assertEqual((endless.returncode, endless.stderr.count("\n")), (1, 1), endless.stderr)

    def test_a_long_loop_of_one_lane_does_not_use_up_the_memory(self):
        long = self.source("""
__global__ void k(int* x) {
  for (int i = 0; threadIdx.x == 0 && i < 300000; ++i) x[0] = x[1], x[2] = x[3], x[4] = x[5];
}
int main() {
  int* x;
  cudaMalloc(&x, 24);
  cudaMemset(x, 0, 24);
  cuda_launch(k, {1, 32}, x);
}""")
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (5 << 28, before[1]))  # the buffers get 1 GB of these addresses
        try:
            report, code = cuda_check.check(long)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
        self.assertEqual((code, report.findings), (0, []))

    def test_what_was_found_before_the_time_limit_is_reported(self):
        endless = self.source("""
__global__ void k(int* x) {
  x[0] = threadIdx.x;
  if (threadIdx.x == 40)
    for (;;) ++x[1];
}
int main() {
  int* x;
  cudaMalloc(&x, 8);
  cudaMemset(x, 0, 8);
  cuda_launch(k, {1, 64}, x);
}""")
        report, code = cuda_check.check(endless, seconds=2)
        self.assertEqual((code, [(found.kind, found.place) for found in report.findings]),
                         (cuda_check.TIMED_OUT, [("race", "attack.cu:4"), ("no end", "attack.cu:6")]))
        self.assertGreater(report.findings[0].times, 30)
        in_host_code = self.source("__global__ void k(int* x) { *x = threadIdx.x; }\nint main() {\n  int* x;\n"
                                   "  cudaMalloc(&x, 4);\n  cuda_launch(k, {1, 2}, x);\n  for (;;) {}\n}")
        report, code = cuda_check.check(in_host_code, seconds=2)
        self.assertEqual((code, [found.kind for found in report.findings]), (cuda_check.TIMED_OUT, ["race"]))


# What nvcc compiles: functions of the host, and of kernels, and what the compiler makes itself.
MARKED = """#include "cuda_emulator.h"
struct Pair {
  float first = 0.0f;
  __device__ float sum(float x) const { return first + x; }
};
template <class T>
__device__ T twice(T x) {
  const auto same = [](T value) { return value; };
  return same(x) + x;
}
template <int N>
__global__ void scale(const float* x, float* y) {
  const Pair pair;
  const auto sum = [&](float value) { return pair.sum(value); };
  y[threadIdx.x] = sum(twice(N * x[threadIdx.x]));
}
unsigned blocks_of(unsigned n) { return n / 32; }
void launch(const float* x, float* y) { cuda_launch(scale<2>, {blocks_of(64), 32}, x, y); }
"""


class Marks(unittest.TestCase):
    def compiled(self, text):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "marked.cu"
            source.write_text(text)
            done = subprocess.run([sys.executable, cuda_compile.__file__, os.environ.get("CXX", "g++"),
                                   "-o", f"{source}.o", "-c", source], capture_output=True, text=True, check=False)
            return done.stderr.replace(f"{folder}/", "")

    def test_a_switch_is_no_call_through_a_pointer(self):
        cases = "".join(f"case {n}: return {3 * n + n % 2};\n" for n in range(20))
        self.assertEqual(self.compiled(f"#include <cuda_runtime.h>\n__device__ int chosen(int n) {{ switch (n) {{ {cases} }} return 0; }}\n"
                                       "#pragma unroll\n__global__ void k(int* x) { *x = chosen(*x); }\n"), "")

    def test_a_function_without_its_mark_is_refused_at_its_line(self):
        self.assertEqual(self.compiled(MARKED), "")
        for mark, function, line, why in (("__device__", "sum", 4, "which the kernel scale calls"),
                                          ("__device__", "twice", 7, "which the kernel scale calls"),
                                          ("__global__", "scale", 12, "which is launched")):
            text = re.sub(rf"{mark} (\w+ {function}\()", r"\1", MARKED)
            self.assertEqual(self.compiled(text),
                             f"marked.cu:{line}: error: expected {mark} before {function}, {why}\n")


# Counts the NaNs after each local variable without a value was multiplied by 0.
UNSET = """
#include <cuda_fp16.h>
#include <cstdio>
struct Pair { float a, b; };
__global__ void k(float* out) {
  float one, three[3], four[4], many[100], two_dimensions[4][5];
  double wide;
  float4 vector;
  Pair pair, pairs[5];
  __half half, halves[3], many_halves[40];
  int whole, n = 0;
  out[n++] = 0.0f * one, out[n++] = 0.0 * wide, out[n++] = 0.0f * __half2float(half);
  for (float x : three) out[n++] = 0.0f * x;
  for (float x : four) out[n++] = 0.0f * x;
  for (float x : many) out[n++] = 0.0f * x;
  for (int i = 0; i < 20; ++i) out[n++] = 0.0f * two_dimensions[i / 5][i % 5];
  out[n++] = 0.0f * vector.x, out[n++] = 0.0f * vector.w;
  out[n++] = 0.0f * pair.a, out[n++] = 0.0f * pair.b;
  for (Pair& each : pairs) out[n++] = 0.0f * each.a, out[n++] = 0.0f * each.b;
  for (int i = 0; i < 3; ++i) {
    float inside;
    out[n++] = 0.0f * inside;
    inside = 1.0f;
  }
  out[n++] = whole < 0 ? NAN : 0.0f;
  for (__half each : halves) out[n++] = 0.0f * __half2float(each);
  for (__half each : many_halves) out[n++] = 0.0f * __half2float(each);
  while (n < 200) out[n++] = 0.0f;
}
int main() {
  float *x, host[200];
  cudaMalloc(&x, sizeof host);
  cuda_launch(k, {1, 1}, x);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  int n = 0;
  for (float value : host) n += value != value;
  return n;
}
"""

ORDINARY = """
#include <algorithm>
#include <cassert>
#include <chrono>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
__global__ void k(float* x) {
  x[threadIdx.x] = std::min(1.0f, std::sqrt(2.0f));
  assert(x[threadIdx.x] < INFINITY);
}
int main() {
  std::mt19937 random(1);
  std::map<std::string, float> numbers{{"a", std::normal_distribution<float>()(random)}};
  std::ostringstream text;
  text << std::setw(5) << std::setprecision(3) << numbers["a"];
  std::function<size_t(const std::string&)> size = [](const std::string& s) { return s.size(); };
  auto now = std::chrono::steady_clock::now();
  std::cerr << (now.time_since_epoch().count() > 0 && size(text.str()) > 0 ? "" : "wrong");
  try {
    throw std::runtime_error("error");
  } catch (const std::exception&) {
  }
  float* x;
  cudaMalloc(&x, 128);
  cuda_launch(k, {1, 32}, x);
}
"""


if __name__ == "__main__":
    unittest.main()
