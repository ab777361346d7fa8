package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

var completionCommand = &subcommand{
	Name:    "completion",
	Args:    "SHELL",
	Summary: "print the completion for your shell",
	Detail: `Prints what bash, zsh, fish or powershell needs to complete commands, flags, models,
sessions and skills at the Tab key. To have it in each new shell:

  bash        tether completion bash > ~/.local/share/bash-completion/completions/tether
  zsh         tether completion zsh > "${fpath[1]}/_tether"
  fish        tether completion fish > ~/.config/fish/completions/tether.fish
  powershell  tether completion powershell >> $PROFILE`,
	Flags: func(*pflag.FlagSet) func(context.Context, *program, []string) error {
		return func(_ context.Context, p *program, args []string) error {
			word := strings.Join(args, " ")
			for _, s := range shells {
				if s.name == word {
					_, err := fmt.Fprint(p.Out, s.script)
					return err
				}
			}
			if word == "" {
				return usagef("completion takes the name of a shell: %s", strings.Join(shellNames(), ", "))
			}
			return usagef("there is no completion for %q%s\nthere are %s", word, didYouMean(word, shellNames()), strings.Join(shellNames(), ", "))
		}
	},
}

// shells are the completions. Each asks tether __complete and knows only how its
// shell is told the answer.
var shells = []struct{ name, script string }{
	{"bash", bashScript}, {"zsh", zshScript}, {"fish", fishScript}, {"powershell", powershellScript},
}

func shellNames() []string {
	var all []string
	for _, s := range shells {
		all = append(all, s.name)
	}
	return all
}

const bashScript = `# bash completion for tether
_tether() {
    local cur=${COMP_WORDS[COMP_CWORD]} word
    COMPREPLY=()
    # bash begins a new word at these characters: it wants what stands behind them
    [[ $cur == [:=] ]] && cur=
    while IFS=$'\t' read -r word _; do
        case $word in
        :files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        :folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
        esac
        COMPREPLY+=("$word")
        [[ $word == *[:=/,] ]] && compopt -o nospace 2>/dev/null
    done < <("${COMP_WORDS[0]}" __complete --breaks ':=' --line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _tether tether
`

const zshScript = `#compdef tether
# zsh completion for tether
_tether() {
    local -a found
    local word means
    while IFS=$'\t' read -r word means; do
        case $word in
        :files) _files; return ;;
        :folders) _files -/; return ;;
        esac
        found+=("${word//:/\\:}${means:+:$means}")
    done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( ${#found} )) && _describe -V tether found
}
if [ "${funcstack[1]}" = "_tether" ]; then
    _tether
else
    compdef _tether tether
fi
`

const fishScript = `# fish completion for tether
function __tether_complete
    set -l found (tether __complete --line (commandline -cp) 2>/dev/null)
    switch "$found[1]"
        case :files
            __fish_complete_path (commandline -ct)
        case :folders
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $found
    end
end
complete -c tether -f -a '(__tether_complete)'
`

const powershellScript = `# PowerShell completion for tether
Register-ArgumentCompleter -Native -CommandName tether -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $line = $commandAst.ToString()
    if ($line.Length -lt $cursorPosition) { $line = $line.PadRight($cursorPosition) }
    $line = $line.Substring(0, $cursorPosition)
    foreach ($found in (tether __complete --line $line)) {
        $word, $means = $found -split [char]9, 2
        if ($word -eq ':files' -or $word -eq ':folders') { return }
        if (-not $means) { $means = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $means)
    }
}
`
