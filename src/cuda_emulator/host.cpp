// The runtime API: memory, streams, events and graphs. Each call is finished when it returns.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "machine.h"

namespace cuda_emulator {

// A graph is a list of the operations of a stream while it was captured.
struct Graph {
  std::vector<std::function<cudaError_t()>> operations;
};
struct Stream {
  bool waits_for_default = true;  // false: cudaStreamNonBlocking
  Graph* captured = nullptr;
  bool permits_memory_calls = false;  // cudaStreamCaptureModeRelaxed
};
struct Event {};

namespace {

cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

std::vector<const Stream*>& captured_streams() {
  static auto* streams = new std::vector<const Stream*>;
  return *streams;
}

// While a stream is captured, a GPU refuses calls that change or read memory at once, that wait, or
// that use the default stream, because the captured stream would have to wait for it (CUDA
// Programming Guide, "Prohibited and Unhandled Operations").
cudaError_t refuse(const char* call, Address pc) {
  finding("recording", pc, 0,
          std::string("host code calls ") + call + " while it records a stream");
  return result(cudaErrorStreamCaptureUnsupported);
}
bool is_recording() { return !captured_streams().empty(); }
bool records_strictly() {
  return !std::ranges::all_of(captured_streams(), &Stream::permits_memory_calls);
}
bool refuses_default_stream() {
  return std::ranges::any_of(captured_streams(), &Stream::waits_for_default);
}
bool refuses_copies() { return records_strictly() || refuses_default_stream(); }

cudaError_t do_or_capture(Stream* stream, const char* call, Address pc,
                          std::function<cudaError_t()> operation) {
  if (stream == nullptr && refuses_default_stream()) return refuse(call, pc);
  if (stream == nullptr || stream->captured == nullptr) return operation();
  stream->captured->operations.push_back(std::move(operation));
  return cudaSuccess;
}

std::string bytes_of(const void* pointer, std::size_t bytes) {
  const Region* region = find_global(reinterpret_cast<Address>(pointer));
  return std::to_string(bytes) + " bytes" +
         (region == nullptr
              ? ""
              : " at byte " + std::to_string(reinterpret_cast<Address>(pointer) - region->begin) +
                    " of " + region->name + " (" + std::to_string(region->bytes) + " bytes)");
}

// The buffer of the source or the target of a copy; null for host memory. ok: whether all bytes
// exist.
Region* side_of_copy(const void* pointer, std::size_t bytes, bool& ok) {
  const auto address = reinterpret_cast<Address>(pointer);
  Region* region = find_global(address);
  if (region != nullptr) ok = !region->freed && address + bytes <= region->end();
  if (region == nullptr) ok = !in_device_arena(address);
  return region;
}

bool check_side(const void* pointer, std::size_t bytes, bool write, Region*& region, Address pc) {
  bool ok = true;
  region = side_of_copy(pointer, bytes, ok);
  if (region == nullptr && write && (is_own(reinterpret_cast<Address>(pointer)))) ok = false;
  if (!ok)
    finding("out of bounds", pc, 0,
            std::string("host code ") + (write ? "writes " : "reads ") + bytes_of(pointer, bytes) +
                ", and not all of them exist");
  return ok;
}

// Reports a copy whose direction differs from its pointers. On a GPU, it would fail.
bool check_direction(const Region* to, const Region* from, cudaMemcpyKind kind, Address pc) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  auto wrong = [](const Region* region, bool device) {
    const bool is_device = region != nullptr && in_device_arena(region->begin);
    return region != nullptr && region->host_may_access ? false : is_device != device;
  };
  if (kind == cudaMemcpyDefault || (!wrong(to, to_device) && !wrong(from, from_device)))
    return true;
  finding("host access", pc, 0, "the direction of cudaMemcpy does not match its pointers");
  return false;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Address pc) {
  Region *target = nullptr, *source = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (!check_side(to, bytes, true, target, pc) || !check_side(from, bytes, false, source, pc) ||
      !check_direction(target, source, kind, pc))
    return result(cudaErrorInvalidValue);
  if (program_is_checked() && source != nullptr && target == nullptr &&
      !any_written(*source, reinterpret_cast<Address>(from), bytes))
    finding("unwritten", pc, 0,
            "host code copies " + bytes_of(from, bytes) + ", which were never written");
  std::memmove(to, from, bytes);
  if (target == nullptr) return cudaSuccess;
  const Address begin = reinterpret_cast<Address>(to);
  if (source == nullptr) {
    set_written(*target, begin, bytes);
  } else {
    std::memmove(target->written.data() + (begin - target->begin),
                 source->written.data() + (reinterpret_cast<Address>(from) - source->begin), bytes);
  }
  return cudaSuccess;
}

cudaError_t fill(void* to, int value, std::size_t bytes, Address pc) {
  Region* target = nullptr;
  if (!check_side(to, bytes, true, target, pc)) return result(cudaErrorInvalidValue);
  std::memset(to, value, bytes);
  if (target != nullptr) set_written(*target, reinterpret_cast<Address>(to), bytes);
  return cudaSuccess;
}

std::string text(dim3 shape) {
  return "(" + std::to_string(shape.x) + "," + std::to_string(shape.y) + "," +
         std::to_string(shape.z) + ")";
}

// The bytes of dynamic shared memory that cudaFuncSetAttribute has allowed for a kernel.
std::map<const void*, std::size_t>& most_dynamic_bytes() {
  static auto* map = new std::map<const void*, std::size_t>;
  return *map;
}

// first_block: as in static_shared_bytes; 0 if no block has run yet.
std::string problem_with_shared_memory(const Launch& launch, std::uint32_t first_block) {
  constexpr std::size_t without_asking = 48 << 10;
  const auto kernel = reinterpret_cast<Address>(launch.kernel);
  const std::size_t fixed =
      static_shared_bytes(kernel, first_block == 0 ? UINT32_MAX : first_block);
  const auto asked = most_dynamic_bytes().find(launch.kernel);
  const bool has_asked = asked != most_dynamic_bytes().end();
  auto problem = [](std::size_t most, const std::string& of, std::size_t found) {
    return "expected at most " + std::to_string(most) + " bytes of " + of + ", found " +
           std::to_string(found);
  };
  if (fixed > without_asking) return problem(without_asking, "shared arrays of fixed size", fixed);
  if (!has_asked && fixed + launch.shared_bytes > without_asking) {
    return problem(without_asking, "shared memory without cudaFuncSetAttribute",
                   fixed + launch.shared_bytes);
  }
  if (has_asked && launch.shared_bytes > asked->second) {
    return problem(asked->second, "dynamic shared memory (the limit set by cudaFuncSetAttribute)",
                   launch.shared_bytes);
  }
  if (fixed + launch.shared_bytes > dynamic_bytes)
    return problem(dynamic_bytes, "shared memory", fixed + launch.shared_bytes);
  return {};
}

// Why no GPU can run this launch; empty if one can.
std::string problem_with_shape(const Launch& launch) {
  const dim3 grid = launch.grid, block = launch.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (threads < 1 || threads > max_block || block.z > 64) {
    return "expected blocks of 1 to " + std::to_string(max_block) +
           " threads, at most 64 of them along z, found " + text(block) + ", " +
           std::to_string(threads) + " threads";
  }
  if (blocks < 1)
    return "expected at least one block, found " + text(grid) +
           " (a division of integers rounds down)";
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) {
    return "expected at most (2147483647,65535,65535) blocks, found " + text(grid);
  }
  if (blocks * threads >= 0xffffffffu) {
    return "expected fewer than 2^32 threads (a limit of the emulator), found " +
           std::to_string(blocks) + " blocks of " + std::to_string(threads);
  }
  return problem_with_shared_memory(launch, 0);
}

void report_launch(const Launch& launch, const std::string& problem) {
  finding("launch", reinterpret_cast<Address>(launch.place), 0,
          "kernel " + function_name(reinterpret_cast<Address>(launch.kernel)) + ": " + problem);
}

cudaError_t start(const Launch& launch) {
  if (!guest_may_launch(launch.kernel)) {
    finding("forbidden", 0, 0, "host code launches a function that is not one of its kernels");
    end_host_code();
  }
  if (const std::string problem = problem_with_shape(launch); !problem.empty()) {
    report_launch(launch, problem);
    return result(cudaErrorInvalidConfiguration);
  }
  return execute(launch) ? cudaSuccess : result(cudaErrorLaunchFailure);
}

}  // namespace

void check_shared_memory(const Launch& launch, std::uint32_t first_block) {
  const std::string problem = problem_with_shared_memory(launch, first_block);
  if (!problem.empty()) report_launch(launch, problem);
}

void run(const Launch& launch) {
  if (launch.stream == nullptr && refuses_default_stream()) {
    refuse("a kernel in the default stream", reinterpret_cast<Address>(launch.place));
    return;
  }
  if (launch.stream == nullptr || launch.stream->captured == nullptr) {
    start(launch);
    return;
  }
  // The graph outlives the parameters, so it gets a copy.
  std::shared_ptr<const AnyParameters> parameters(launch.parameters->copy());
  launch.stream->captured->operations.push_back([launch, parameters] {
    Launch kept = launch;
    kept.parameters = parameters.get();
    return start(kept);
  });
}

}  // namespace cuda_emulator

using namespace cuda_emulator;

namespace {

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
#define ERROR(name, text) \
  { name, #name, text }
constexpr ErrorText error_texts[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorUnknown, "unknown error")};

const ErrorText& text_of(cudaError_t error) {
  for (const ErrorText& known : error_texts)
    if (known.error == error) return known;
  return error_texts[std::size(error_texts) - 1];
}

constexpr int threads_per_multiprocessor = 2048;
constexpr std::size_t bytes_per_multiprocessor = dynamic_bytes + (1 << 10);

}  // namespace

const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }

cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

static cudaError_t give(void** pointer, std::size_t bytes, bool managed, Address pc) {
  *pointer = bytes == 0 ? nullptr : allocate(bytes, managed, pc);
  return result(*pointer == nullptr && bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return records_strictly() ? refuse("cudaMalloc", PC) : give(pointer, bytes, false, PC);
}
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return records_strictly() ? refuse("cudaMallocManaged", PC) : give(pointer, bytes, true, PC);
}
static cudaError_t take(void* pointer, Address pc) {
  if (pointer == nullptr || release(pointer)) return cudaSuccess;
  finding("out of bounds", pc, 0,
          "cudaFree of a pointer that cudaMalloc did not return, or that is already free");
  return result(cudaErrorInvalidValue);
}
cudaError_t cudaFree(void* pointer) {
  return records_strictly() ? refuse("cudaFree", PC) : take(pointer, PC);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return take(pointer, PC); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  device_memory_left(*free, *total);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  *pointer = std::malloc(bytes);
  return result(*pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  return give(pointer, bytes, false, PC);
}
cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return refuses_copies() ? refuse("cudaMemcpy", PC) : copy(to, from, bytes, kind, PC);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return do_or_capture(stream, "cudaMemcpyAsync", PC,
                       [=, pc = PC] { return copy(to, from, bytes, kind, pc); });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  if (refuses_copies()) return refuse("cudaMemcpy2D", PC);
  if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidValue);
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error =
        copy(static_cast<char*>(to) + row * to_pitch,
             static_cast<const char*>(from) + row * from_pitch, width, kind, PC);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return refuses_copies() ? refuse("cudaMemset", PC) : fill(to, value, bytes, PC);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return do_or_capture(stream, "cudaMemsetAsync", PC,
                       [=, pc = PC] { return fill(to, value, bytes, pc); });
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return result(device == 0 ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 12000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  cudaDeviceProp p{};
  std::strcpy(p.name, "CUDA emulator");
  p.totalGlobalMem = std::size_t{16} << 30;
  p.sharedMemPerBlock = 48 << 10;
  p.totalConstMem = 64 << 10;
  p.sharedMemPerMultiprocessor = bytes_per_multiprocessor;
  p.sharedMemPerBlockOptin = dynamic_bytes;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = static_cast<int>(max_block);
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = static_cast<int>(max_block);
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.major = 8;
  p.multiProcessorCount = 4;  // few enough that the emulator can fill all of them with blocks
  p.maxThreadsPerMultiProcessor = threads_per_multiprocessor;
  p.maxBlocksPerMultiProcessor = 32;
  p.concurrentKernels = p.managedMemory = 1;
  p.l2CacheSize = 40 << 20;
  p.memoryBusWidth = 5120;
  *properties = p;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess)
    return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(p.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      break;
  }
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int threads, size_t shared_bytes) {
  if (threads < 1) return result(cudaErrorInvalidValue);
  const std::size_t bytes =
      static_shared_bytes(reinterpret_cast<Address>(kernel), UINT32_MAX) + shared_bytes + (1 << 10);
  *blocks = std::min({32, threads_per_multiprocessor / ((threads + 31) / 32 * 32),
                      static_cast<int>(bytes_per_multiprocessor / bytes)});
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return is_recording() ? refuse("cudaDeviceSynchronize", PC) : last_error;
}
cudaError_t cudaDeviceReset() { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > dynamic_bytes)
    return result(cudaErrorInvalidValue);
  most_dynamic_bytes()[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new Stream;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = new Stream{.waits_for_default = flags != cudaStreamNonBlocking};
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(captured_streams(), stream);
  delete stream;
  return cudaSuccess;
}
static cudaError_t wait_for(cudaStream_t stream, const char* call, Address pc) {
  const bool refused = stream == nullptr ? refuses_default_stream() : stream->captured != nullptr;
  return refused ? refuse(call, pc) : last_error;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return wait_for(stream, "cudaStreamSynchronize", PC);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return wait_for(stream, "cudaStreamQuery", PC); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new Event;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventQuery(cudaEvent_t) { return last_error; }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return last_error; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr || stream->captured != nullptr)
    return result(cudaErrorStreamCaptureUnsupported);
  stream->captured = new Graph;
  stream->permits_memory_calls = mode == cudaStreamCaptureModeRelaxed;
  captured_streams().push_back(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream == nullptr || stream->captured == nullptr)
    return result(cudaErrorStreamCaptureUnsupported);
  *graph = stream->captured;
  stream->captured = nullptr;
  std::erase(captured_streams(), stream);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  // For tests: a GPU without memory for the graph.
  if (std::getenv("CUDA_EMULATOR_NO_GRAPHS") != nullptr) return result(cudaErrorMemoryAllocation);
  *executable = new Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& operation : executable->operations)
    if (const cudaError_t error = operation(); error != cudaSuccess) return error;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
