/* tty.c - one key at a time, and the terminal put back whatever happens.
 *
 * In C because the handler of a signal that ends the process may only do what is safe in a
 * signal handler: restore the settings, show the cursor, and raise the signal again.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include "cweftdemo.h"

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { FATAL_COUNT = sizeof fatal / sizeof *fatal };

static struct {
  volatile sig_atomic_t entered;
  volatile sig_atomic_t resized;
  int input;
  int output;
  struct termios before;
  struct sigaction old_fatal[FATAL_COUNT];
  struct sigaction old_winch;
  sigset_t old_mask;
} tty;

static void restore_terminal(void) {
  if (!tty.entered) return;
  tty.entered = 0;
  /* Cursor shown, attributes off, back from the alternate screen. */
  static const char end[] = "\033[0m\033[?25h\033[?1049l";
  ssize_t ignored = write(tty.output, end, sizeof end - 1);
  (void)ignored;
  tcsetattr(tty.input, TCSANOW, &tty.before);
}

static void on_fatal(int number) {
  restore_terminal();
  /* SA_RESETHAND has put the default back: whoever waits for us sees the signal. */
  raise(number);
}

static void on_resize(int number) {
  (void)number;
  tty.resized = 1;
}

int weft_tty_enter(int input, int output) {
  if (tcgetattr(input, &tty.before) != 0) return errno;
  tty.input = input;
  tty.output = output;
  struct termios keys = tty.before;
  keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  keys.c_iflag |= ICRNL; /* Enter is \n whoever had the terminal before */
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  /* Suspended in the middle of a picture, the shell would get the terminal in our settings. */
  keys.c_cc[VSUSP] = _POSIX_VDISABLE;

  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigfillset(&action.sa_mask);
  action.sa_handler = on_fatal;
  action.sa_flags = (int)SA_RESETHAND;
  tty.entered = 1;
  for (int index = 0; index < FATAL_COUNT; index++)
    sigaction(fatal[index], &action, &tty.old_fatal[index]);
  action.sa_handler = on_resize;
  action.sa_flags = 0;
  sigaction(SIGWINCH, &action, &tty.old_winch);
  /* Let in only while waiting for a key: one that came just before would be slept through. */
  sigset_t winch;
  sigemptyset(&winch);
  sigaddset(&winch, SIGWINCH);
  sigprocmask(SIG_BLOCK, &winch, &tty.old_mask);

  static const char begin[] = "\033[?1049h\033[?25l";
  if (tcsetattr(input, TCSADRAIN, &keys) != 0 ||
      write(output, begin, sizeof begin - 1) < 0) {
    int error = errno;
    weft_tty_leave();
    return error;
  }
  return 0;
}

void weft_tty_leave(void) {
  if (!tty.entered) return;
  restore_terminal();
  for (int index = 0; index < FATAL_COUNT; index++)
    sigaction(fatal[index], &tty.old_fatal[index], NULL);
  sigaction(SIGWINCH, &tty.old_winch, NULL);
  sigprocmask(SIG_SETMASK, &tty.old_mask, NULL);
}

weft_tty_event weft_tty_wait(void) {
  fd_set ready;
  FD_ZERO(&ready);
  FD_SET(tty.input, &ready);
  sigset_t mask = tty.old_mask;
  sigdelset(&mask, SIGWINCH);
  int count = pselect(tty.input + 1, &ready, NULL, NULL, NULL, &mask);
  int error = errno;
  if (tty.resized) {
    tty.resized = 0;
    return WEFT_TTY_RESIZED;
  }
  if (count > 0) return WEFT_TTY_KEY;
  return error == EINTR ? WEFT_TTY_RESIZED : WEFT_TTY_FAILED;
}
