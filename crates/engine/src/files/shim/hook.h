// Who is asked before each I/O and told after it: the C ABI, whose other side is shim/mod.rs.

#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <cstdint>
#include <memory>

extern "C" {

// Mirrored in shim/mod.rs (RawIo, RawHook).
struct entremet_io {
  uint64_t offset;
  uint64_t bytes;
  uint64_t number;   // of its file in its database; 0: it has none
  uint8_t op;        // 0 read, 1 write, 2 sync, 3 delete
  uint8_t file;      // 0 data, 1 log, 2 metadata, 3 directory
  uint8_t activity;  // Env::IOActivity; 0x7f unknown
  uint8_t urgent;    // background work that writers wait for
};

struct entremet_hook {
  void* context;
  // Returns when the I/O may begin; the number is given back to `end`. `fault` is 0, and is set if the I/O is not to
  // be done: 1 it fails, 2 there is no space.
  uint64_t (*begin)(void* context, const entremet_io* io, uint8_t* fault);
  // `bytes` were moved; `ok`: without an error (end of file is none).
  void (*end)(void* context, const entremet_io* io, uint64_t token, uint64_t bytes, uint8_t ok);
  // Largest I/O; longer ones are cut. A multiple of 4096.
  uint64_t (*chunk)(void* context);
  void (*drop)(void* context);
};

}  // extern "C"

namespace entremet {

using namespace ROCKSDB_NAMESPACE;

constexpr uint8_t kRead = 0, kWrite = 1, kSync = 2, kDelete = 3;
constexpr uint8_t kData = 0, kLog = 1, kMetadata = 2, kDirectory = 3;
constexpr uint8_t kFailed = 1, kNoSpace = 2, kHalf = 3;
constexpr uint64_t kPage = 4096;

// Which file an I/O is in.
struct FileId {
  uint8_t kind;
  uint64_t number;
};

class Hook {
 public:
  explicit Hook(const entremet_hook& hook) : hook_(hook) {}
  ~Hook() { hook_.drop(hook_.context); }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  uint64_t Chunk() const { return std::max(hook_.chunk(hook_.context), kPage); }

  // Asks, does, tells. `io_call` returns the status and sets the bytes that were moved.
  template <typename Call>
  IOStatus Do(uint8_t op, FileId file, const IOOptions& options, uint64_t offset, uint64_t bytes, Call io_call) const {
    return DoOrHalf(op, file, options, offset, bytes, io_call, [](uint64_t*) { return Broken(kFailed); });
  }

  // The same; `half_call` does half of it on a device that breaks so.
  template <typename Call, typename Half>
  IOStatus DoOrHalf(uint8_t op, FileId file, const IOOptions& options, uint64_t offset, uint64_t bytes, Call io_call,
                    Half half_call) const {
    // Flush and compaction are given this priority when writers are delayed or stopped.
    const bool urgent = options.rate_limiter_priority == Env::IO_USER;
    const entremet_io io{offset, bytes, file.number, op, file.kind, static_cast<uint8_t>(options.io_activity), urgent};
    uint8_t fault = 0;
    const uint64_t token = hook_.begin(hook_.context, &io, &fault);
    uint64_t moved = 0;
    IOStatus status = fault == 0 ? io_call(&moved) : fault == kHalf ? half_call(&moved) : Broken(fault);
    hook_.end(hook_.context, &io, token, moved, status.ok());
    return status;
  }

  static IOStatus Broken(uint8_t fault) {
    return fault == kNoSpace ? IOStatus::NoSpace("No space left on device") : IOStatus::IOError("Input/output error");
  }

 private:
  const entremet_hook hook_;
};

using SharedHook = std::shared_ptr<const Hook>;

}  // namespace entremet
