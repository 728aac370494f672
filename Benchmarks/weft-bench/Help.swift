let version = "0.1.0"

let help = """
  weft-bench: measures Weft, and next to it what it is compared with.

  USAGE: weft-bench [options]

    --filter TEXT       run the jobs whose name contains TEXT; TEXT* means those that start
                        with it. May be given several times. Relations are shown when all
                        their jobs ran.
    --list              print the jobs, what they measure and what they leave out
    --samples N         samples per job (30)
    --quick             few and short samples, and no job of many seconds: for a look only
    --json              print the report as JSON instead of tables
    --save FILE         write the report as JSON to FILE as well
    --chart FILE        draw the figures into FILE (.svg or .html)
    --compare FILE      compare with an earlier report; exit with 2 if a job got slower, by both
                        minimum and median, than the threshold allows
    --threshold PERCENT what counts as slower (10), or as more instructions (5)
    --strict            exit with 2 if a goal is missed
    --peers LIST        build the programs of Benchmarks/Peers (go,boost,java,tokio,c,swift, or
                        all) and run their jobs and Weft's in turns; what is not installed is
                        left out. --filter chooses rows, --list prints them
    --peer-rounds N     how often each program is started for each row (5)
    --count             count the instructions of the hottest operations, one by one, in place of
                        any time: it comes to the same on a busy machine
    --baseline FILE     compare the counts with those in FILE, or in the right file of a folder;
                        exit with 2 if one is past the threshold
    --save-baseline FILE
                        write the counts to FILE, or into a folder
    -h, --help          print this
    --version           print the version

  All figures of one group are taken in turns, round by round, and relations are the median
  over the rounds: trust them more than times from different runs. They are computed from the
  minima as well; a goal counts as met or missed where both agree, and is unclear otherwise.
  Build with -c release.

  EXAMPLES
    weft-bench --filter 'switch.*' --filter coroutine
    weft-bench --save before.json
    weft-bench --compare before.json --threshold 5
    weft-bench --peers go,tokio --filter 'sync.*' --chart peers.html
    weft-bench --count --baseline Benchmarks/Baselines

  EXIT CODES: 0 fine, 1 failure (a job computed the wrong result, a file), 2 past the threshold or
  a goal missed with --strict, 64 usage, 77 instructions cannot be counted here, or there is no
  baseline for this architecture and compiler.

  """
