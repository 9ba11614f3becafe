// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Makes the outputs and the counts of a job from the slices that the EAL has looked up.
///
///   slc_* --------------------------+--> [m: slice, complete] --> beats of indices, verdicts,
///   trk_* --> [g: + cold_base] -----+                       |     rejected entries
///                  +--> cold rows                           +--> [popcounts] --> [counts]
///
/// FRAGMENT: hot lanes bring their slot; for the others the tracker's results follow in order, and
/// the slice waits for the one with `trk_last_i`. The lanes of a beat come in one or more slices and
/// leave as one beat of `idx_*`. An end of a sample leaves its number on `pop_*` or `non_*` and a bit
/// in the bitmap, and *commits* the counts: what the record shows are sums over complete samples.
///
///   slices (4 lanes)   h c | h / h h h /  | h h        h: hot, c: cold, / : end of a sample
///   pop_*                          1
///   non_*                    0
///   idx_*              beat 0 when its top lane is there, beat 1 (2 words) with the terminal slice
///
/// A cold row without position ends the job at its sample: what follows is ignored, `stop_o` asks
/// for the terminal slice. LOAD: rejected entries leave one by one on `ent_*`, in the input's format.
/// DUMP: entries of the EAL pass from `dmp_*` to `ent_*`.
///
/// The terminal slice closes all streams (`last`, with the words that are left or none).
///
/// Throughput  One slice per cycle; one per group of the tracker where it has several; one rejected
///             entry per cycle.
/// Latency     2 cycles from a slice to its beat; 4 to the counts.
/// Stalls      By each output stream, `trk_valid_i` and `slc_valid_i`.
/// Errors      COLD_OVERFLOW is `overflow_o`; all others are decided before the EAL.
/// Reset       Drops the job.
module hotline_assembler #(
  /// Words of a beat.
  parameter int unsigned Lanes        = 2,
  /// Rows of a result of the tracker.
  parameter int unsigned ColdLanes    = 1,
  /// Bits of a cold position.
  parameter int unsigned PositionBits = 7,
  localparam int unsigned LaneBits   = $clog2(Lanes),
  localparam int unsigned CountBits  = $clog2(ColdLanes + 1)
) (
  input  logic                                   clk_i,
  input  logic                                   rst_ni,

  /// A pulse while idle; the arguments stay until `done_o`.
  input  logic                                   start_i,
  input  logic                                   fragment_i,
  input  logic                                   load_i,
  input  logic                                   dump_i,
  /// LOAD of 8-byte entries.
  input  logic                                   entries_i,
  input  logic [31:0]                            cold_base_i,
  /// Streams that the job has, to be closed.
  input  logic                                   has_indices_i,
  input  logic                                   has_samples_i,
  input  logic                                   has_cold_i,
  /// Level: everything is closed, the counts are final. Until the next start.
  output logic                                   done_o,
  output logic                                   stop_o,

  input  logic                                   slc_valid_i,
  output logic                                   slc_ready_o,
  input  logic                                   slc_terminal_i,
  input  logic                                   slc_end_i,
  input  logic [LaneBits:0]                      slc_end_lane_i,
  input  logic [Lanes-1:0]                       slc_mask_i,
  input  logic [Lanes-1:0]                       slc_pinned_i,
  input  logic [Lanes-1:0]                       slc_hit_i,
  /// FRAGMENT: cold; LOAD: rejected.
  input  logic [Lanes-1:0]                       slc_marked_i,
  /// FRAGMENT: slots; LOAD: the input.
  input  logic [Lanes-1:0][31:0]                 slc_words_i,

  input  logic                                   trk_valid_i,
  output logic                                   trk_ready_o,
  input  logic [ColdLanes-1:0]                   trk_mask_i,
  input  logic [ColdLanes-1:0][31:0]             trk_rows_i,
  input  logic [ColdLanes-1:0][PositionBits-1:0] trk_positions_i,
  input  logic [ColdLanes-1:0]                   trk_new_i,
  input  logic [ColdLanes-1:0]                   trk_overflow_i,
  input  logic [ColdLanes-1:0][LaneBits-1:0]     trk_lanes_i,
  /// The slice's last.
  input  logic                                   trk_last_i,

  input  logic                                   dmp_valid_i,
  output logic                                   dmp_ready_o,
  input  logic [31:0]                            dmp_row_i,
  input  logic [29:0]                            dmp_slot_i,
  input  logic [1:0]                             dmp_counter_i,
  input  logic                                   dmp_last_i,
  input  logic                                   dmp_void_i,

  /// Beats of encoded indices, as the write engine takes them.
  output logic                                   idx_valid_o,
  input  logic                                   idx_ready_i,
  output logic [Lanes-1:0][31:0]                 idx_data_o,
  output logic [LaneBits:0]                      idx_words_o,
  output logic                                   idx_last_o,

  /// Streams of words: `count` of them, from word 0 up; `last` ends the stream.
  output logic                                   ent_valid_o,
  input  logic                                   ent_ready_i,
  output logic [1:0][31:0]                       ent_words_o,
  output logic [1:0]                             ent_count_o,
  output logic                                   ent_last_o,

  output logic                                   pop_valid_o,
  input  logic                                   pop_ready_i,
  output logic [31:0]                            pop_word_o,
  output logic                                   pop_count_o,
  output logic                                   pop_last_o,

  output logic                                   non_valid_o,
  input  logic                                   non_ready_i,
  output logic [31:0]                            non_word_o,
  output logic                                   non_count_o,
  output logic                                   non_last_o,

  output logic                                   map_valid_o,
  input  logic                                   map_ready_i,
  output logic [31:0]                            map_word_o,
  output logic                                   map_count_o,
  output logic                                   map_last_o,

  output logic                                   col_valid_o,
  input  logic                                   col_ready_i,
  output logic [ColdLanes-1:0][31:0]             col_words_o,
  output logic [CountBits-1:0]                   col_count_o,
  output logic                                   col_last_o,

  /// Counts, valid with `done_o`.
  output logic                                   overflow_o,
  output logic [31:0]                            samples_o,
  output logic [31:0]                            popular_o,
  output logic [31:0]                            lookups_o,
  output logic [31:0]                            pinned_o,
  output logic [31:0]                            eal_o,
  /// FRAGMENT: cold rows; LOAD: rejected entries.
  output logic [31:0]                            rows_o,

  /// An output stream holds up the data path.
  output logic                                   stall_o
);

  localparam int unsigned SumBits = LaneBits + 1;

  typedef logic [SumBits-1:0] sum_t;

  function automatic sum_t ones(input logic [Lanes-1:0] bits);
    sum_t sum;
    sum = '0;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      sum = sum + sum_t'(bits[lane]);
    end
    return sum;
  endfunction

  typedef enum logic [1:0] {
    StIdle,    // no job, or one that is done
    StSlices,  // slices up to the terminal one
    StDump,    // entries of a DUMP
    StClose    // waits until the streams have taken their ends
  } state_e;

  state_e state_q;
  logic   dead_q;            // after an overflow

  // -------------------------------------------------------------- g: results of the tracker
  logic                               g_valid_q, g_ready;
  logic [ColdLanes-1:0]               g_mask_q, g_new_q, g_overflow_q;
  logic [ColdLanes-1:0][31:0]         g_index_q, g_rows_q, new_rows;
  logic [ColdLanes-1:0][LaneBits-1:0] g_lanes_q;
  logic [CountBits-1:0]               g_count_q, new_count;
  logic                               g_last_q;

  assign trk_ready_o = !g_valid_q || g_ready;

  // New rows, moved together.
  always_comb begin
    new_rows  = '0;
    new_count = '0;
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      if (trk_new_i[place]) begin
        for (int unsigned target = 0; target <= place; target++) begin
          if (new_count == CountBits'(target)) begin
            new_rows[target] = trk_rows_i[place];
          end
        end
        new_count = new_count + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      g_valid_q <= 1'b0;
    end else if (trk_ready_o) begin
      g_valid_q <= trk_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (trk_ready_o) begin
      g_mask_q     <= trk_mask_i;
      g_new_q      <= trk_new_i;
      g_overflow_q <= trk_overflow_i;
      g_lanes_q    <= trk_lanes_i;
      g_last_q     <= trk_last_i;
      g_rows_q     <= new_rows;
      g_count_q    <= new_count;
      for (int unsigned place = 0; place < ColdLanes; place++) begin
        g_index_q[place] <= cold_base_i + 32'(trk_positions_i[place]);
      end
    end
  end

  // ------------------------------------------------------------ a slice and its groups: m
  logic                   m_valid_q, m_ready, m_load, needs_groups, group_take, cold_free;
  logic                   m_terminal_q, m_end_q, m_cold_below_q, m_cold_behind_q;
  logic [Lanes-1:0]       m_mask_q, m_pinned_q, m_hit_q, m_below_q, m_new_q;
  logic                   m_overflow_any_q, m_overflow_below_q;
  logic [Lanes-1:0]       m_left_q;      // LOAD: rejected lanes that were not sent
  logic [Lanes-1:0]       m_marked_q;
  logic [Lanes-1:0][31:0] m_words_q;
  logic [LaneBits:0]      m_stop_q;      // one more than the top lane
  // Collected from the groups before the last.
  logic [Lanes-1:0]       a_new_q, a_overflow_q, new_lanes, overflow_lanes;
  logic [Lanes-1:0][31:0] a_words_q, words;
  logic [Lanes-1:0]       below;
  logic [LaneBits:0]      stop_lane;
  logic                   cold_close_q;  // the end of the cold list is still to be sent

  assign needs_groups = fragment_i && slc_marked_i != '0;
  assign cold_free    = g_count_q == '0 || col_ready_i;
  assign group_take   = g_valid_q && slc_valid_i && needs_groups && cold_free
                        && (!g_last_q || m_ready);
  assign g_ready      = group_take;
  assign m_load       = slc_valid_i && m_ready && state_q == StSlices
                        && (!needs_groups || (g_valid_q && g_last_q && cold_free));
  assign slc_ready_o  = m_load;

  // What a group says is taken up in every cycle in which it is there, also before it can leave:
  // that changes nothing, and keeps the path from the output streams out of these words.
  always_comb begin
    new_lanes      = a_new_q;
    overflow_lanes = a_overflow_q;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      words[lane] = needs_groups && slc_marked_i[lane] ? a_words_q[lane] : slc_words_i[lane];
      for (int unsigned place = 0; place < ColdLanes; place++) begin
        if (g_valid_q && slc_valid_i && needs_groups && g_mask_q[place]
            && g_lanes_q[place] == LaneBits'(lane)) begin
          words[lane]          = g_index_q[place];
          new_lanes[lane]      = g_new_q[place];
          overflow_lanes[lane] = g_overflow_q[place];
        end
      end
      below[lane] = !slc_end_i || (LaneBits + 1)'(lane) < slc_end_lane_i;
    end
    stop_lane = '0;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      if (slc_mask_i[lane]) begin
        stop_lane = (LaneBits + 1)'(lane + 1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (m_load) begin
      m_terminal_q    <= slc_terminal_i;
      m_end_q         <= slc_end_i;
      m_mask_q        <= slc_mask_i;
      m_pinned_q      <= slc_pinned_i;
      m_hit_q         <= slc_hit_i;
      m_marked_q      <= slc_marked_i;
      m_below_q       <= below;
      m_new_q         <= new_lanes;
      m_overflow_any_q   <= overflow_lanes != '0;
      m_overflow_below_q <= (overflow_lanes & below) != '0;
      m_words_q       <= words;
      m_stop_q        <= stop_lane;
      m_cold_below_q  <= (slc_marked_i & below) != '0;
      m_cold_behind_q <= (slc_marked_i & ~below) != '0;
    end
    a_words_q <= words;
    if (m_load || start_i) begin
      a_new_q      <= '0;
      a_overflow_q <= '0;
    end else begin
      a_new_q      <= new_lanes;
      a_overflow_q <= overflow_lanes;
    end
  end

  // ---------------------------------------------------------------------- m: what leaves of it
  logic                   m_fire, terminal, want_beat, want_popular, want_other, want_map;
  logic                   end_ok, popular, live;
  logic                   carry_q;       // the open sample has a cold lookup before this slice
  logic [31:0]            sample_q;
  logic [31:0]            map_q, map_d;
  logic [Lanes-1:0][31:0] beat_q, beat_d;
  logic [LaneBits:0]      beat_words_q;
  logic [LaneBits-1:0]    send_lane;
  logic [Lanes-1:0]       left_after;
  logic                   entry_due, entry_last_lane;
  // Ends of streams that are still to be sent.
  logic                   idx_close_q, ent_close_q, pop_close_q, non_close_q, map_close_q;
  logic                   closing;

  assign live           = fragment_i && !dead_q;
  assign terminal       = m_valid_q && m_terminal_q;
  assign end_ok         = live && m_end_q && !m_overflow_below_q;
  assign popular        = !carry_q && !m_cold_below_q;
  assign want_beat      = live && m_mask_q[Lanes-1];
  assign want_popular   = end_ok && popular;
  assign want_other     = end_ok && !popular;
  assign want_map       = end_ok && sample_q[4:0] == 5'd31;
  assign entry_due      = load_i && m_left_q != '0;

  always_comb begin
    map_d = map_q;
    map_d[sample_q[4:0]] = popular;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      beat_d[lane] = m_mask_q[lane] ? m_words_q[lane] : beat_q[lane];
    end
    send_lane = '0;
    for (int unsigned lane = Lanes; lane > 0; lane--) begin
      if (m_left_q[lane-1]) begin
        send_lane = LaneBits'(lane - 1);
      end
    end
    left_after            = m_left_q;
    left_after[send_lane] = 1'b0;
  end

  assign entry_last_lane = left_after == '0;

  // The streams take their words together, when all that are wanted are ready.
  assign m_fire = m_valid_q && state_q == StSlices
                  && (!want_beat || idx_ready_i) && (!want_popular || pop_ready_i)
                  && (!want_other || non_ready_i) && (!want_map || map_ready_i)
                  && (!entry_due || (ent_ready_i && entry_last_lane));
  assign m_ready = !m_valid_q || m_fire;
  assign stall_o = m_valid_q && state_q == StSlices && !m_fire;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_valid_q <= 1'b0;
    end else begin
      m_valid_q <= m_load || (m_valid_q && !m_fire);
    end
  end

  always_ff @(posedge clk_i) begin
    if (m_load) begin
      m_left_q <= slc_marked_i;
    end else if (m_valid_q && entry_due && ent_ready_i) begin
      m_left_q <= left_after;
    end
  end

  // --------------------------------------------------------------------------- output streams
  assign idx_valid_o = idx_close_q || (m_fire && want_beat);
  assign idx_data_o  = idx_close_q ? beat_q : beat_d;
  assign idx_words_o = idx_close_q ? beat_words_q : (LaneBits + 1)'(Lanes);
  assign idx_last_o  = idx_close_q;

  assign pop_valid_o = pop_close_q || (m_fire && want_popular);
  assign pop_word_o  = sample_q;
  assign pop_count_o = !pop_close_q;
  assign pop_last_o  = pop_close_q;

  assign non_valid_o = non_close_q || (m_fire && want_other);
  assign non_word_o  = sample_q;
  assign non_count_o = !non_close_q;
  assign non_last_o  = non_close_q;

  // The last word of the bitmap may be a partial one.
  assign map_valid_o = map_close_q || (m_fire && want_map);
  assign map_word_o  = map_close_q ? map_q : map_d;
  assign map_count_o = !map_close_q || sample_q[4:0] != '0;
  assign map_last_o  = map_close_q;

  assign col_valid_o = cold_close_q || (group_take && g_count_q != '0);
  assign col_words_o = g_rows_q;
  assign col_count_o = cold_close_q ? '0 : g_count_q;
  assign col_last_o  = cold_close_q;

  assign dmp_ready_o = state_q == StDump && ent_ready_i;

  always_comb begin
    ent_words_o = {m_words_q[send_lane | LaneBits'(1)], m_words_q[send_lane]};
    ent_count_o = entries_i ? 2'd2 : 2'd1;
    ent_last_o  = 1'b0;
    ent_valid_o = m_valid_q && state_q == StSlices && entry_due;
    if (state_q == StDump) begin
      ent_words_o = {{dmp_counter_i, dmp_slot_i}, dmp_row_i};
      ent_count_o = dmp_void_i ? 2'd0 : 2'd2;
      ent_last_o  = dmp_last_i;
      ent_valid_o = dmp_valid_i;
    end else if (ent_close_q) begin
      ent_count_o = 2'd0;
      ent_last_o  = 1'b1;
      ent_valid_o = 1'b1;
    end
  end

  assign closing = idx_close_q || ent_close_q || pop_close_q || non_close_q || map_close_q
                   || cold_close_q;

  // ------------------------------------------------------------------------------------- counts
  logic c_valid_q, c_commit_q, c_popular_q;
  sum_t c_lookups_q, c_pinned_q, c_hit_q, c_rows_q;                      // all lanes
  sum_t c_lookups_below_q, c_pinned_below_q, c_hit_below_q, c_rows_below_q;
  logic [Lanes-1:0] row_lanes;
  logic [31:0] run_lookups_q, run_pinned_q, run_hit_q, run_rows_q;       // up to now
  logic [31:0] lookups_q, pinned_q, hit_q, rows_q, popular_q, samples_q; // of complete samples
  logic [31:0] dumped_q;

  assign row_lanes = fragment_i ? m_new_q : m_marked_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      c_valid_q <= 1'b0;
    end else begin
      c_valid_q <= m_fire && !m_terminal_q && !dead_q;
    end
    c_commit_q        <= end_ok;
    c_popular_q       <= popular;
    c_lookups_q       <= ones(m_mask_q);
    c_pinned_q        <= ones(m_pinned_q);
    c_hit_q           <= ones(m_hit_q);
    c_rows_q          <= ones(row_lanes);
    c_lookups_below_q <= ones(m_mask_q & m_below_q);
    c_pinned_below_q  <= ones(m_pinned_q & m_below_q);
    c_hit_below_q     <= ones(m_hit_q & m_below_q);
    c_rows_below_q    <= ones(row_lanes & m_below_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      run_lookups_q <= '0;
      run_pinned_q  <= '0;
      run_hit_q     <= '0;
      run_rows_q    <= '0;
      lookups_q     <= '0;
      pinned_q      <= '0;
      hit_q         <= '0;
      rows_q        <= '0;
      popular_q     <= '0;
      samples_q     <= '0;
    end else if (c_valid_q) begin
      run_lookups_q <= run_lookups_q + 32'(c_lookups_q);
      run_pinned_q  <= run_pinned_q + 32'(c_pinned_q);
      run_hit_q     <= run_hit_q + 32'(c_hit_q);
      run_rows_q    <= run_rows_q + 32'(c_rows_q);
      if (c_commit_q) begin
        lookups_q <= run_lookups_q + 32'(c_lookups_below_q);
        pinned_q  <= run_pinned_q + 32'(c_pinned_below_q);
        hit_q     <= run_hit_q + 32'(c_hit_below_q);
        rows_q    <= run_rows_q + 32'(c_rows_below_q);
        popular_q <= popular_q + 32'(c_popular_q);
        samples_q <= samples_q + 1'b1;
      end
    end
  end

  assign samples_o = samples_q;
  assign popular_o = popular_q;
  assign lookups_o = dump_i ? dumped_q : fragment_i ? lookups_q : run_lookups_q;
  assign pinned_o  = fragment_i ? pinned_q : run_pinned_q;
  assign eal_o     = fragment_i ? hit_q : run_hit_q;
  assign rows_o    = fragment_i ? rows_q : run_rows_q;

  // -------------------------------------------------------------------------------------- state
  assign done_o     = state_q == StIdle && !c_valid_q;
  assign stop_o     = dead_q;
  assign overflow_o = dead_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      dead_q       <= 1'b0;
      carry_q      <= 1'b0;
      sample_q     <= '0;
      map_q        <= '0;
      beat_words_q <= '0;
      dumped_q     <= '0;
      idx_close_q  <= 1'b0;
      ent_close_q  <= 1'b0;
      pop_close_q  <= 1'b0;
      non_close_q  <= 1'b0;
      map_close_q  <= 1'b0;
      cold_close_q <= 1'b0;
    end else begin
      idx_close_q  <= idx_close_q && !idx_ready_i;
      ent_close_q  <= ent_close_q && !ent_ready_i;
      pop_close_q  <= pop_close_q && !pop_ready_i;
      non_close_q  <= non_close_q && !non_ready_i;
      map_close_q  <= map_close_q && !map_ready_i;
      cold_close_q <= cold_close_q && !col_ready_i;

      unique case (state_q)
        StIdle: begin
          if (start_i) begin
            state_q      <= dump_i ? StDump : StSlices;
            dead_q       <= 1'b0;
            carry_q      <= 1'b0;
            sample_q     <= '0;
            map_q        <= '0;
            beat_words_q <= '0;
            dumped_q     <= '0;
          end
        end

        StSlices: begin
          if (m_fire && live) begin
            if (m_mask_q != '0) begin
              beat_words_q <= want_beat ? '0 : m_stop_q;
            end
            if (end_ok) begin
              sample_q <= sample_q + 1'b1;
              map_q    <= want_map ? '0 : map_d;
              carry_q  <= m_cold_behind_q;
            end else begin
              carry_q  <= carry_q || m_cold_below_q;
            end
            dead_q <= m_overflow_any_q;
          end
          if (m_fire && terminal) begin
            state_q      <= StClose;
            idx_close_q  <= has_indices_i && fragment_i;
            ent_close_q  <= has_indices_i && !fragment_i;
            pop_close_q  <= has_samples_i;
            non_close_q  <= has_samples_i;
            map_close_q  <= has_samples_i;
            cold_close_q <= has_cold_i;
          end
        end

        StDump: begin
          if (dmp_valid_i && ent_ready_i) begin
            dumped_q <= dumped_q + 32'(!dmp_void_i);
            if (dmp_last_i) begin
              state_q <= StIdle;
            end
          end
        end

        default: begin  // StClose
          if (!closing) begin
            state_q <= StIdle;
          end
        end
      endcase
    end
  end

  // Not reset: qualified by `beat_words_q`.
  always_ff @(posedge clk_i) begin
    if (m_fire && live) begin
      beat_q <= beat_d;
    end
  end

`ifndef SYNTHESIS
  a_start_idle : assert property (@(posedge clk_i) disable iff (!rst_ni) start_i |-> done_o);
  for (genvar place = 0; place < int'(ColdLanes); place++) begin : gen_assert
    a_group : assert property (@(posedge clk_i) disable iff (!rst_ni)
        group_take && g_mask_q[place] |-> slc_marked_i[g_lanes_q[place]]);
  end
`endif

endmodule
