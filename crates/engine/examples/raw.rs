use rocksdb::*;
use std::time::Instant;
fn cpu(name: Option<&str>) -> f64 {
    let mut t = 0.0;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let n = stat.split(['(', ')']).nth(1).unwrap_or_default().to_owned();
        if name.is_some_and(|x| x != n) { continue; }
        let f = stat.rsplit(')').next().unwrap().split_whitespace();
        t += f.skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum::<u64>() as f64 / 100.0;
    }
    t
}
fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let dir = "/tmp/bench/raw";
    let _ = std::fs::remove_dir_all(dir);
    let mut o = Options::default();
    o.create_if_missing(true);
    o.set_write_buffer_size(64 << 20);
    o.set_max_write_buffer_number(4);
    o.set_allow_concurrent_memtable_write(false);
    o.set_use_direct_io_for_flush_and_compaction(true);
    o.set_use_direct_reads(true);
    o.set_compression_type(DBCompressionType::None);
    o.set_level_compaction_dynamic_level_bytes(true);
    o.set_max_bytes_for_level_base(256 << 20);
    o.set_max_background_jobs(3);
    if !mode.contains('W') { o.set_wal_bytes_per_sync(1 << 20); }
    let arena = if mode.contains('A') { 1 << 20 } else { 64 << 10 };
    o.set_arena_block_size(arena);
    if mode.contains('L') { o.set_level_zero_file_num_compaction_trigger(8); o.set_max_bytes_for_level_base(512 << 20); }
    let mut t = BlockBasedOptions::default();
    if mode.contains('B') { t.set_block_size(16 << 10); }
    t.set_bloom_filter(10.0, false);
    t.set_format_version(6);
    if !mode.contains('P') { t.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch); t.set_partition_filters(true); t.set_cache_index_and_filter_blocks(true); }
    o.set_block_based_table_factory(&t);
    if mode.contains('M') { o.set_memtable_huge_page_size(2 << 20); }
    if mode.contains('G') { o.set_enable_blob_files(true); o.set_min_blob_size(512); o.set_enable_blob_gc(true); }
    if mode.contains('U') { o.set_compaction_style(DBCompactionStyle::Universal); }
    let db = DB::open(&o, dir).unwrap();
    let mut w = WriteOptions::default();
    if mode.contains('N') { w.disable_wal(true); }
    let value = vec![b'x'; 1025];
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let (s, c) = (Instant::now(), cpu(None));
    let mut n = 0u64;
    while s.elapsed().as_secs_f64() < 8.0 {
        let mut keys: Vec<String> = (0..800).map(|_| { x ^= x << 13; x ^= x >> 7; x ^= x << 17; format!("okey:{:012}", x % 200_000) }).collect();
        if mode.contains('S') { keys.sort(); keys.dedup(); }
        let mut b = WriteBatch::with_capacity_bytes(900_000);
        for k in &keys { b.put(k, &value); }
        db.write_opt(b, &w).unwrap();
        n += 800;
    }
    let per = |c: f64| c / n as f64 * 1e6;
    println!("{mode:8} {:>8.0}/s all {:.2} main {:.2} flush {:.2} compact {:.2}", n as f64 / s.elapsed().as_secs_f64(), per(cpu(None) - c), per(cpu(Some("raw"))), per(cpu(Some("rocksdb:high"))), per(cpu(Some("rocksdb:low"))));
}
