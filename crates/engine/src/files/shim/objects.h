// The objects of one memtable: found by a hash of their key, put in order when somebody asks for order.
//
// One thread inserts; any number look up or ask for order meanwhile, without a lock but for the order's own. What a
// reader must see was inserted before it took its sequence number, so it never matters whether it sees more.

#pragma once

#include <rocksdb/slice.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "memory/allocator.h"

namespace entremet {

using namespace ROCKSDB_NAMESPACE;

static_assert(std::endian::native == std::endian::little, "RocksDB's fixed64 is little-endian, and read as it lies");

// The internal key of an entry: a varint32 of its length lies before it, and the value behind it.
inline Slice InternalKey(const char* entry) {
  const auto* at = reinterpret_cast<const uint8_t*>(entry);
  uint32_t length = *at & 127u;
  for (uint32_t shift = 7; *at++ & 128u; shift += 7) {
    length |= (*at & 127u) << shift;
  }
  return Slice(reinterpret_cast<const char*>(at), length);
}

// The user key in an internal one.
inline Slice KeyIn(const Slice& internal) { return Slice(internal.data(), internal.size() - 8); }

// Sequence number and type.
inline uint64_t TagOf(const Slice& internal) {
  uint64_t tag;
  memcpy(&tag, internal.data() + internal.size() - 8, sizeof tag);
  return tag;
}

// RocksDB's order: by user key, newer ones first.
inline int Compare(const Slice& a, const Slice& b) {
  const int by_key = KeyIn(a).compare(KeyIn(b));
  if (by_key != 0) return by_key;
  const uint64_t tag_a = TagOf(a), tag_b = TagOf(b);
  return tag_a > tag_b ? -1 : tag_a < tag_b;
}

inline bool Before(const char* a, const char* b) { return Compare(InternalKey(a), InternalKey(b)) < 0; }

class Objects {
 public:
  // Entries in order.
  using Run = std::vector<const char*>;
  // Together they have all entries, each once.
  using Runs = std::vector<std::shared_ptr<const Run>>;

  Objects(Allocator* allocator, uint64_t seed) : allocator_(allocator), seed_(seed) {}
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // REQUIRES: one thread, sequence numbers ascend.
  void Insert(const char* entry) {
    const Slice key = KeyIn(InternalKey(entry));
    const uint32_t number = count_.load(std::memory_order_relaxed);
    const Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || used_ >= table->Most()) table = Grow(table);
    const uint32_t hash = Hash(key);
    std::atomic<uint64_t>* slot = Find(*table, hash, key);
    const uint64_t found = slot->load(std::memory_order_relaxed);
    used_ += found == 0;
    *New(number) = Entry{entry, NumberIn(found)};
    const char* first = first_.load(std::memory_order_relaxed);
    if (first == nullptr || Before(entry, first)) first_.store(entry, std::memory_order_release);
    const char* last = last_.load(std::memory_order_relaxed);
    if (last == nullptr || Before(last, entry)) last_.store(entry, std::memory_order_release);
    slot->store(uint64_t{hash} << 32 | (number + 1), std::memory_order_release);
    count_.store(number + 1, std::memory_order_release);
  }

  // Gives `visit` the entries of a user key that are no newer than the internal key says, newest first, until it
  // returns false.
  template <typename Visit>
  void Each(const Slice& internal, Visit visit) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return;
    const Slice key = KeyIn(internal);
    const uint64_t tag = TagOf(internal);
    const std::atomic<uint64_t>* slot = Find(*table, Hash(key), key);
    uint32_t number = NumberIn(slot->load(std::memory_order_acquire));
    while (number != 0) {
      const Entry& entry = *At(number - 1);
      if (TagOf(InternalKey(entry.at)) <= tag && !visit(entry.at)) return;
      number = entry.older;
    }
  }

  // The entries at both ends of the order; null: there is none.
  const char* First() const { return first_.load(std::memory_order_acquire); }
  const char* Last() const { return last_.load(std::memory_order_acquire); }

  // All entries in order. Takes as long as there are many that nobody asked to be ordered before. `settled`: there
  // will be no more.
  Runs InOrder(bool settled) {
    std::lock_guard<std::mutex> lock(ordering_);
    const uint32_t count = count_.load(std::memory_order_acquire);
    if (count > ordered_) {
      runs_.push_back(Sorted(ordered_, count));
      ordered_ = count;
    }
    // Runs halve from one to the next, so that an entry is merged as often as the number of all has binary digits.
    while (runs_.size() > 1 && (settled || runs_[runs_.size() - 2]->size() <= 2 * runs_.back()->size())) {
      const auto newer = std::move(runs_.back());
      runs_.pop_back();
      runs_.back() = Merged(*runs_.back(), *newer);
    }
    order_bytes_.store(ordered_ * sizeof(const char*), std::memory_order_relaxed);
    return runs_;
  }

  // Bytes beside those of the allocator.
  size_t OrderBytes() const { return order_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    const char* at;
    // Number of the entry of the same user key before it, and 1; 0: there is none.
    uint32_t older;
  };

  // Open addressing. A slot has the hash of a user key above and the number of its newest entry, and 1, below.
  struct Table {
    uint32_t bits;
    std::atomic<uint64_t>* slots;

    uint32_t Size() const { return uint32_t{1} << bits; }
    uint32_t Most() const { return Size() / 4 * 3; }
    uint32_t Home(uint32_t hash) const { return hash >> (32 - bits); }
    uint32_t After(uint32_t at) const { return (at + 1) & (Size() - 1); }
  };

  static constexpr uint32_t kFirstBits = 6;
  // A memtable is full of tables that were too small if they only double.
  static constexpr uint32_t kGrowBits = 2;
  static constexpr uint32_t kFirstEntries = 64;
  static constexpr size_t kChunks = 26;

  static uint32_t NumberIn(uint64_t slot) { return static_cast<uint32_t>(slot); }

  // The slot of a user key: its own, or the empty one where it belongs.
  std::atomic<uint64_t>* Find(const Table& table, uint32_t hash, const Slice& key) const {
    for (uint32_t at = table.Home(hash);; at = table.After(at)) {
      const uint64_t slot = table.slots[at].load(std::memory_order_acquire);
      if (slot == 0) return &table.slots[at];
      if (slot >> 32 == hash && KeyIn(InternalKey(At(NumberIn(slot) - 1)->at)) == key) return &table.slots[at];
    }
  }

  // A larger table with what `old` has, which readers may go on to use.
  const Table* Grow(const Table* old) {
    const uint32_t bits = old == nullptr ? kFirstBits : old->bits + kGrowBits;
    auto* memory = allocator_->AllocateAligned(sizeof(Table) + (sizeof(std::atomic<uint64_t>) << bits));
    auto* slots = reinterpret_cast<std::atomic<uint64_t>*>(memory + sizeof(Table));
    auto* table = new (memory) Table{bits, slots};
    for (uint32_t at = 0; at < table->Size(); ++at) {
      new (&slots[at]) std::atomic<uint64_t>(0);
    }
    for (uint32_t from = 0; old != nullptr && from < old->Size(); ++from) {
      const uint64_t slot = old->slots[from].load(std::memory_order_relaxed);
      if (slot == 0) continue;
      uint32_t to = table->Home(static_cast<uint32_t>(slot >> 32));
      while (slots[to].load(std::memory_order_relaxed) != 0) to = table->After(to);
      slots[to].store(slot, std::memory_order_relaxed);
    }
    table_.store(table, std::memory_order_release);
    return table;
  }

  // Chunk c has kFirstEntries << c entries.
  static std::pair<uint32_t, uint32_t> Place(uint32_t number) {
    const uint32_t chunk = std::bit_width(number / kFirstEntries + 1) - 1;
    return {chunk, number - kFirstEntries * ((uint32_t{1} << chunk) - 1)};
  }

  const Entry* At(uint32_t number) const {
    const auto [chunk, place] = Place(number);
    return &chunks_[chunk][place];
  }

  Entry* New(uint32_t number) {
    const auto [chunk, place] = Place(number);
    if (place == 0) {
      auto* memory = allocator_->AllocateAligned(sizeof(Entry) * kFirstEntries << chunk);
      chunks_[chunk] = reinterpret_cast<Entry*>(memory);
    }
    return &chunks_[chunk][place];
  }

  static uint64_t Fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  // Whoever does not know the seed cannot make keys that lie together.
  uint32_t Hash(const Slice& key) const {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    uint64_t hash = seed_ ^ key.size() * kOdd;
    const char* at = key.data();
    size_t left = key.size();
    for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t)) {
      hash = Fold(hash ^ Word(at, sizeof(uint64_t)), seed_ ^ kOdd);
    }
    hash = Fold(hash ^ Word(at, left), kOdd);
    return static_cast<uint32_t>(hash >> 32 ^ hash);
  }

  static uint64_t Word(const char* at, size_t bytes) {
    uint64_t word = 0;
    memcpy(&word, at, bytes);
    return word;
  }

  // The next bytes of a user key as a number that is ordered as they are.
  static uint64_t Rank(const Slice& key, size_t skip) {
    const size_t bytes = std::min(key.size() - skip, sizeof(uint64_t));
    return __builtin_bswap64(Word(key.data() + skip, bytes));
  }

  // The entries from one number to another (exclusive) in order.
  std::shared_ptr<const Run> Sorted(uint32_t from, uint32_t to) const {
    // Keys that lie between two others begin as both do: what is behind that tells most of them apart, and is compared
    // without a look at the keys.
    const Slice first = KeyIn(InternalKey(First()));
    const size_t skip = first.difference_offset(KeyIn(InternalKey(Last())));
    // Of a user key's entries only the newest is sorted: the older ones follow it, as they are linked.
    std::vector<bool> follows(to - from);
    for (uint32_t number = from; number < to; ++number) {
      const uint32_t older = At(number)->older;
      if (older > from) follows[older - 1 - from] = true;
    }
    std::vector<std::pair<uint64_t, uint32_t>> ranked;
    ranked.reserve(to - from - std::count(follows.begin(), follows.end(), true));
    for (uint32_t number = from; number < to; ++number) {
      if (!follows[number - from]) ranked.emplace_back(Rank(KeyIn(InternalKey(At(number)->at)), skip), number);
    }
    std::sort(ranked.begin(), ranked.end(), [this](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : Before(At(a.second)->at, At(b.second)->at);
    });
    auto run = std::make_shared<Run>();
    run->reserve(to - from);
    for (const auto& [_, newest] : ranked) {
      for (uint32_t number = newest + 1; number > from; number = At(number - 1)->older) {
        run->push_back(At(number - 1)->at);
      }
    }
    return run;
  }

  static std::shared_ptr<const Run> Merged(const Run& a, const Run& b) {
    auto run = std::make_shared<Run>();
    run->reserve(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(*run), Before);
    return run;
  }

  Allocator* const allocator_;
  const uint64_t seed_;

  // The writer's: user keys.
  uint32_t used_ = 0;
  std::atomic<uint32_t> count_{0};
  std::atomic<const Table*> table_{nullptr};
  // Set before the first of their entries is published, and never again.
  Entry* chunks_[kChunks] = {};
  std::atomic<const char*> first_{nullptr};
  std::atomic<const char*> last_{nullptr};

  std::mutex ordering_;
  Runs runs_;
  // Entries in them: the first so many.
  uint32_t ordered_ = 0;
  std::atomic<size_t> order_bytes_{0};
};

}  // namespace entremet
